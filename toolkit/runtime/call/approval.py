"""Approval of a call before it runs: the request, the possible answers, and what an answer is bound to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from toolkit.errors import ToolkitError, ToolNotAllowed
from toolkit.guard.files.sandbox_fs import SandboxFS
from toolkit.guard.fs.consent import LocatedPath
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.approvals import Suspend

_NO_FILE: Final = "no file: "


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call as shown."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run it; the model receives ``words``."""

    words: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Run it with these arguments instead; they are validated and judged like any others."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Respond:
    """Do not run it; answer with this content, which must match the tool's output schema."""

    content: Any


Answer: TypeAlias = Approve | Deny | Edit | Respond
Reply: TypeAlias = Answer | Suspend
"""What an approver returns: an answer, or that there will be one later."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One call that waits for approval, with its validated arguments."""

    tool_name: str
    arguments: BaseModel
    preview: Preview
    because: str
    """Why the policy asks."""
    call_id: str | None
    session_id: str
    digest: str
    """A hash of what will run, and of the files it touches as they are now."""
    files: Mapping[str, str] = field(repr=False)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """The tool's self-declared hints, as in MCP (``destructiveHint`` and others). They prove nothing."""
    real_paths: Mapping[str, str] = field(default_factory=dict)
    """Where a path of the preview really leads, for those that a link or ``..`` leads elsewhere."""


Approver: TypeAlias = Callable[[ApprovalRequest], Reply | Awaitable[Reply]]


def request_approval(
    tool_name: str,
    arguments: BaseModel,
    preview: Preview,
    because: str,
    fs: SandboxFS | None,
    places: Collection[LocatedPath],
    *,
    call_id: str | None,
    session_id: str,
    annotations: Mapping[str, Any],
) -> ApprovalRequest:
    """Makes the request for one call; its digest binds the answer to what is shown."""
    files = file_states(fs, preview)
    shown = arguments.model_dump(mode="json", by_alias=True)
    touched = [preview.reads, preview.writes, preview.argv, preview.shell, preview.url, preview.diff, preview.tools]
    digest = hashlib.sha256(json.dumps([tool_name, shown, touched, files], sort_keys=True).encode()).hexdigest()
    return ApprovalRequest(
        tool_name,
        arguments,
        preview,
        because,
        call_id,
        session_id,
        digest,
        files,
        annotations,
        {place.text: place.shown for place in places if place.shown},
    )


def check_unchanged(request: ApprovalRequest, fs: SandboxFS | None) -> None:
    """An approval covers the files as they were when it was asked for: raises if one has changed since."""
    now = file_states(fs, request.preview)
    changed = sorted(path for path in request.files if now.get(path) != request.files[path])
    if changed:
        is_new = all(states.get(changed[0], "").startswith(_NO_FILE) for states in (request.files, now))
        what = "the place of the new file " if is_new else ""
        way = "" if is_new else " (the file, or the way to it)"
        raise ToolNotAllowed(
            f"{what}{changed[0]!r} changed while the call waited for approval{way},"
            f" so the approval no longer holds; {'' if is_new else 'read it and '}call the tool again",
            tool_name=request.tool_name,
            details={"changed": changed},
        )


def file_states(fs: SandboxFS | None, preview: Preview) -> dict[str, str]:
    """A fingerprint of each file the call touches and of its directory; for a file that is missing or refused, the error.

    The directory counts because a new file has no fingerprint: it must not be made in another place than was shown.
    """
    if fs is None:
        return {}
    states = {}
    for path in dict.fromkeys(preview.paths):
        try:
            content = str(fs.fingerprint(path))
        except ToolkitError as error:
            content = f"{_NO_FILE}{error}"
        states[path] = f"{content}\n{fs.locate(path).identity}"
    return states


def denial(request: ApprovalRequest, answer: Deny) -> ToolNotAllowed:
    words = f": {answer.words}" if answer.words else ""
    return ToolNotAllowed(f"{request.tool_name!r} was not approved{words}", tool_name=request.tool_name)
