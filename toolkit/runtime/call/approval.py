"""Asking somebody before a call runs: what is shown, what can be answered, and what an answer is bound to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel

from toolkit.errors import ToolkitError, ToolNotAllowed
from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.policy.preview import Preview


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call as shown."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run it; the words are told to the model."""

    words: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Run it with these arguments instead; they are validated and judged like any others."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Respond:
    """Do not run it; answer with this content, which must be what the tool could have answered."""

    content: Any


Answer: TypeAlias = Approve | Deny | Edit | Respond


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One call that waits for a person: what will really run, validated and resolved."""

    tool_name: str
    arguments: BaseModel
    preview: Preview
    because: str
    """Why the policy asks."""
    call_id: str | None
    session_id: str
    digest: str
    """Of everything above that decides what runs, and of the files it touches as they are now."""
    files: Mapping[str, str] = field(repr=False)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """What the tool says of itself, as MCP has it (``destructiveHint`` and the like): its own word, and no proof."""


Approver: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]


def request_approval(
    tool_name: str,
    arguments: BaseModel,
    preview: Preview,
    because: str,
    fs: SandboxFS | None,
    *,
    call_id: str | None,
    session_id: str,
    annotations: Mapping[str, Any],
) -> ApprovalRequest:
    """The request for one call; the digest binds its answer to what is shown."""
    files = file_states(fs, preview)
    shown = arguments.model_dump(mode="json", by_alias=True)
    touched = [preview.reads, preview.writes, preview.argv, preview.shell, preview.url, preview.diff]
    digest = hashlib.sha256(json.dumps([tool_name, shown, touched, files], sort_keys=True).encode()).hexdigest()
    return ApprovalRequest(tool_name, arguments, preview, because, call_id, session_id, digest, files, annotations)


def check_unchanged(request: ApprovalRequest, fs: SandboxFS | None) -> None:
    """An approval covers the files as they were shown: one that changed meanwhile voids it."""
    now = file_states(fs, request.preview)
    changed = sorted(path for path in request.files if now.get(path) != request.files[path])
    if changed:
        raise ToolNotAllowed(
            f"{changed[0]!r} changed while the call waited for approval, which is void now; look at it and ask again",
            tool_name=request.tool_name,
            details={"changed": changed},
        )


def file_states(fs: SandboxFS | None, preview: Preview) -> dict[str, str]:
    """A mark for each file the call touches, which changes with it; files that are missing or refused have marks, too."""
    if fs is None:
        return {}
    states = {}
    for path in dict.fromkeys(preview.paths):
        try:
            states[path] = str(fs.fingerprint(path))
        except ToolkitError as error:
            states[path] = str(error)
    return states


def refused(request: ApprovalRequest, answer: Deny) -> ToolNotAllowed:
    words = f": {answer.words}" if answer.words else ""
    return ToolNotAllowed(f"{request.tool_name!r} was not approved{words}", tool_name=request.tool_name)
