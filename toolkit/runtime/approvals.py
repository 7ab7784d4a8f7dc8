"""Approval of a call before it runs: the request, the possible answers, and what an answer is bound to."""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import BaseModel

from toolkit.errors import SetupError, ToolkitError, ToolNotAllowed
from toolkit.files.sandbox_fs import SandboxFS
from toolkit.guard.files.consent import LocatedPath
from toolkit.guard.policy.preview import Preview
from toolkit.visible import escape_hidden, escape_hidden_lines

if TYPE_CHECKING:
    from toolkit.guard.policy.rule import Rule
    from toolkit.runtime.remembered import Bound, RememberedApproval, Scope
    from toolkit.runtime.stores.approvals import ApprovalStore


# ----------------------------------------------------------------------------------------------------------------------
# A call that waits for an approval without anybody waiting: put away as JSON, resumed later, elsewhere, once.
#
# The approver returns ``Suspend()``; the call ends with ``ApprovalPending``, whose ``suspended`` is the call. Whoever
# has an answer gives both to ``tk.resume(...)``, in any process that has the same tools, an equal workspace and
# the same store of approvals.
#
# Promise: what is resumed is what was shown. The store, not the JSON, holds the digest of the tool, its arguments, what the
# call touches and the content of those files; if one of them is different at the end, the call does not run. An approval is
# taken from the store before the call runs, so it is used once, whatever happens then. The policy of the toolkit that resumes
# a call judges it again: what it denies by then does not run.

_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class SuspendedCall:
    """A call that waits for its approval, with what a person needs in order to decide.

    >>> call = SuspendedCall("8f1c", "bash", {"command": "make"}, "rule: ask", shell="make")
    >>> SuspendedCall.from_json(call.to_json()) == call
    True
    """

    id: str
    tool_name: str
    arguments: dict[str, Any]
    because: str
    """Why the policy asks."""
    call_id: str | None = None
    session_id: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None
    shell: str | None = None
    url: str | None = None
    diff: str | None = None
    cwd: str = "."
    remembers: str = ""
    """What ``Approve(remember=...)`` would answer from then on; empty if it cannot be remembered."""

    def to_json(self) -> str:
        """The call as text, to be kept anywhere. Arguments are in it as they are."""
        return json.dumps({"version": _VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> SuspendedCall:
        """Reads what ``to_json`` wrote."""
        try:
            found = json.loads(text)
            if found.pop("version") != _VERSION:
                raise SetupError("this suspended call was written by another version of the toolkit; ask again")
            known = {field.name: found[field.name] for field in fields(cls)}
            for name in ("reads", "writes", "argv"):
                known[name] = None if known[name] is None else tuple(known[name])
            call = cls(**known)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise error if isinstance(error, SetupError) else SetupError("this is not a suspended call") from None
        if not isinstance(call.id, str) or not isinstance(call.tool_name, str) or not isinstance(call.arguments, dict):
            raise SetupError("this is not a suspended call")
        return call


@dataclass(frozen=True, slots=True)
class Suspend:
    """Do not run it now: end the call, and let it be resumed with an answer.

    :param save: gets the call that was put away, before the model is told; if it raises, the call is refused.
    :param seconds: how long an answer may take.
    """

    save: Callable[[SuspendedCall], object] | None = None
    seconds: float = 7 * 24 * 3600.0

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf"):
            raise SetupError(f"Suspend: seconds must be a number greater than 0, not {self.seconds!r}")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """The answer to a call that was suspended."""

    answer: Answer
    suspended: SuspendedCall


class ApprovalPending(ToolNotAllowed):
    """The call waits for an approval and has done nothing; ``suspended`` can be resumed with an answer."""

    def __init__(self, message: str, suspended: SuspendedCall) -> None:
        super().__init__(message, tool_name=suspended.tool_name, details={"decision": "ask", "suspended": suspended.id})
        self.suspended: Final = suspended


def suspend(request: ApprovalRequest, wish: Suspend, store: ApprovalStore, fs: SandboxFS | None) -> ApprovalPending:
    """Puts a call away; the end of the call that made it."""
    preview = request.preview
    suspended = SuspendedCall(
        secrets.token_hex(16),
        request.tool_name,
        request.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True),
        request.because,
        request.call_id,
        request.session_id,
        preview.reads,
        preview.writes,
        preview.argv,
        preview.shell,
        preview.url,
        preview.diff,
        preview.cwd,
        request.remembers,
    )
    digest = lasting_digest(request, fs, suspended)
    store.put(suspended.session_id, suspended.id, suspended.to_json(), digest=digest, seconds=wish.seconds)
    if wish.save is not None:
        wish.save(suspended)
    message = f"{request.tool_name!r} waits for the approval of a person; nothing was run. Go on with something else"
    return ApprovalPending(message, suspended)


def take_answer(request: ApprovalRequest, fs: SandboxFS | None, given: GivenAnswer, store: ApprovalStore) -> Answer:
    """The answer, for the first who asks; raises for everybody else, and if the call is not the one that was shown."""
    waiting = given.suspended
    if store.take(waiting.session_id, waiting.id, digest=lasting_digest(request, fs, waiting)) is None:
        raise ToolNotAllowed(
            f"{request.tool_name!r} does not run: it is not what was shown to be approved (its arguments, the text that was"
            " shown, or a file that it touches, have changed), or the approval was used already, has expired, or is not known"
            " here; call the tool again",
            tool_name=request.tool_name,
        )
    return given.answer


def not_asked(tool_name: str) -> ToolNotAllowed:
    """The refusal of an answer to a call about which nobody is asked any more."""
    return ToolNotAllowed(
        f"the policy does not ask about this call of {tool_name!r} any more, or an approval was remembered meanwhile,"
        " so there is nothing to resume; call the tool",
        tool_name=tool_name,
    )


def lasting_digest(request: ApprovalRequest, fs: SandboxFS | None, suspended: SuspendedCall) -> str:
    """Like ``request.digest``, but equal in every process and on every machine that sees the same files.

    Covers all that a person reads in the suspended call: an answer to another text is no answer.
    """
    preview = request.preview
    files = {path: _content(fs, path) for path in dict.fromkeys(preview.paths)} if fs is not None else {}
    shown = request.arguments.model_dump(mode="json", by_alias=True)
    touched = [preview.reads, preview.writes, preview.argv, preview.shell, preview.url, preview.diff, preview.tools]
    parts = [asdict(suspended), request.tool_name, shown, touched, preview.cwd, files, dict(request.real_paths)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _content(fs: SandboxFS, path: str) -> str:
    try:
        return fs.fingerprint(path).sha256 or ""
    except ToolkitError as error:
        return f"no file: {error}"


_NO_FILE: Final = "no file: "


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call as shown.

    ``remember`` also answers the same question later: for this ``session``, or ``always`` in this workspace.
    ``ApprovalRequest.remembers`` says what that covers. Where it is empty, only this call is approved.

    >>> Approve(remember="session")
    Approve(remember='session')
    """

    remember: Scope | None = None

    def __post_init__(self) -> None:
        if self.remember not in (None, "session", "always"):
            raise SetupError(f"Approve: remember must be 'session' or 'always', not {self.remember!r}")


@dataclass(frozen=True, slots=True)
class Remembered(Approve):
    """The answer of an approval that was remembered: nobody was asked."""

    approval: RememberedApproval | None = None


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
    remembers: str = ""
    """What ``Approve(remember=...)`` would answer from then on, in words; empty if it cannot be remembered."""
    rules: tuple[Rule[Any], ...] = ()
    """The allow rules that say the same. Empty if no rule can; what is remembered is never wider than ``remembers``."""
    not_remembered: str = ""
    """Why it cannot be remembered, as part of a sentence."""


Approver: TypeAlias = Callable[[ApprovalRequest], Reply | Awaitable[Reply]]
"""Answers a request, sync or async, with ``Approve``, ``Deny``, ``Edit``, ``Respond`` or ``Suspend``."""


# ----------------------------------------------------------------------------------------------------------------------
# What a person reads before they approve a call.

_MAX_CHARACTERS: Final = 20_000


def approval_text(request: ApprovalRequest, indent: str = "") -> str:
    """The tool, why it is asked about, and what it would do: the command, the diff, the URL or the arguments.

    Characters that could hide something are shown as escapes. What is too long to be shown is said to be cut. With an
    ``indent``, no line of text from outside passes for one of ours.
    """
    preview = request.preview
    parts = [f"Run {request.tool_name}?", f"Asked because {escape_hidden(request.because)}."]
    if preview.argv is not None:
        parts.append(f"Command: {escape_hidden(shlex.join(preview.argv))}")
    if preview.shell is not None:
        parts.append(f"Shell text:\n{_block(preview.shell, indent)}")
    if preview.argv is not None or preview.shell is not None:
        variables = f" (sets {', '.join(map(escape_hidden, preview.variables))})" if preview.variables else ""
        parts.append(f"In the folder: {escape_hidden(preview.cwd)}{variables}")
    if preview.url is not None:
        parts.append(f"URL: {escape_hidden(preview.url)}")
    if preview.tools:
        parts.append(f"A program that can call: {escape_hidden(', '.join(preview.tools))}")
    if preview.writes:
        parts.append(f"Writes: {_paths(preview.writes, request)}")
    if preview.reads:
        parts.append(f"Reads: {_paths(preview.reads, request)}")
    if preview.diff is not None:
        parts.append(f"Changes:\n{_block(preview.diff, indent)}")
    else:
        shown = request.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
        parts.append(f"Arguments:\n{_block(json.dumps(shown, ensure_ascii=False, indent=2), indent)}")
    return "\n".join(parts)


def _paths(paths: tuple[str, ...], request: ApprovalRequest) -> str:
    """Paths as the call names them, and where they really lead if that is elsewhere."""
    shown = (f"{path} -> {request.real_paths[path]}" if path in request.real_paths else path for path in paths)
    return escape_hidden(", ".join(shown))


def _block(text: str, indent: str) -> str:
    shown = escape_hidden_lines(text)
    if len(shown) > _MAX_CHARACTERS:
        shown = f"{shown[:_MAX_CHARACTERS]}\n[{len(shown) - _MAX_CHARACTERS} more characters are not shown]"
    return "\n".join(f"{indent}{line}" for line in shown.split("\n"))


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
    bound: Bound,
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
        bound.words,
        bound.rules,
        bound.reason,
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
