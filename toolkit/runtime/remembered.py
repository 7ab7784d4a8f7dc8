"""Approvals that are remembered: what one covers, and where it is kept, for a session or for a workspace.

Promise: a remembered approval answers only a question of the policy, and only for exactly what was shown. It never reaches a
call that a rule denies. What it covers is a digest (``Bound.key``) of the tool, the workspace and:

- the real places of all paths that the call names, and whether it writes them;
- the words of its commands, the real folder where they start, the variables that they get, and what the sandbox lets them do;
- the scheme, host and port of its URL;
- every argument that is none of these. Two exceptions: a tool that can only use files may have other arguments for the same
  paths, and limits of time and size do not count.

Remembered ``always`` means: in a file of the user's state directory that only this user may read, outside every root. There
is one for each workspace, known by its real path and by the folder itself, so another folder placed there inherits nothing.
It is replaced as a whole, under a lock; what cannot be read is an error that names the file, and is never written over.

Limit: what a command or a tool does is its own business. A script that is run by the same words later may have changed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import BaseModel

from toolkit.errors import PolicyError, SetupError, ToolkitError, ToolNotAllowed
from toolkit.guard.policy.rule import Rule
from toolkit.runtime.state_directory import REMEMBERED_APPROVALS, StateDirectory
from toolkit.runtime.stores.private_files import PrivateFiles, digest_of, reason_of

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.consent import LocatedPath
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.catalog import Tool

Scope: TypeAlias = Literal["session", "always"]

_VERSION: Final = 1
_MAX_KEPT: Final = 1000
_FILES: Final = frozenset({"read", "write"})
_LIMITS: Final = frozenset({"timeout_ms", "max_bytes", "max_output_bytes"})
"""Arguments of our own tools, by convention, that change nothing about what a command or a request is."""
_COMMENTS: Final = frozenset({"description"})
"""The same for commands: what a model says about them."""


# -- what is covered ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound:
    """What an approval of one call covers if it is remembered."""

    key: str
    words: str
    """The same for people; empty if it cannot be remembered."""
    rules: tuple[Rule[Any], ...] = ()
    """The allow rules that say it, as far as rules can."""
    reason: str = ""
    """Why it cannot be remembered."""


def bind(
    tool: Tool,
    args: BaseModel,
    preview: Preview,
    places: Sequence[LocatedPath] | None,
    files: SandboxFS,
    workspace: tuple[str, str],
    sandbox: Sequence[str],
) -> Bound:
    """What would be remembered about a call; ``files`` tells where its commands start, ``sandbox`` what they may do."""
    try:
        return _bind(tool, args, preview, places, files, workspace, sandbox)
    except _CannotBind as why:
        return Bound("", "", (), str(why))


class _CannotBind(Exception):
    """An approval of the call cannot be remembered, because of this."""


def _bind(
    tool: Tool,
    args: BaseModel,
    preview: Preview,
    places: Sequence[LocatedPath] | None,
    files: SandboxFS,
    workspace: tuple[str, str],
    sandbox: Sequence[str],
) -> Bound:
    runs = preview.argv is not None or preview.shell is not None
    words: list[str] = []
    rules: list[Rule[Any] | None] = []
    found: dict[str, Any] = {
        "tool": [tool.info.module, tool.name],
        "workspace": workspace,
        "sandbox": sandbox,
        "paths": _bind_paths(tool, preview, places, words, rules),
        "programs": preview.tools,
    }
    if runs:
        found["commands"] = _bind_commands(tool.name, preview, files, words, rules)
    if preview.url is not None:
        found["host"] = _bind_host(tool.name, preview.url, words, rules)
    is_touching = bool(words)
    only_files = bool(places) and not runs and preview.url is None and not preview.tools
    if only_files and tool.granted <= _FILES:
        words[-1] += ", whatever its other arguments are"
    else:
        rest = found["arguments"] = _other_arguments(tool, args, runs=runs, requests=preview.url is not None)
        if rest or not is_touching:
            words.append("with exactly these other arguments" if is_touching else "with exactly these arguments")
    if not is_touching and not type(args).model_fields:
        words, rules = ["which takes no arguments"], [Rule("allow", tools=[tool.name])]
    key = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    known = [rule for rule in rules if rule is not None]
    return Bound(key, f"{tool.name}, {' and '.join(words)}", tuple(known) if len(known) == len(rules) else ())


def _bind_paths(
    tool: Tool,
    preview: Preview,
    places: Sequence[LocatedPath] | None,
    words: list[str],
    rules: list[Rule[Any] | None],
) -> list[list[Any]]:
    if not preview.paths:
        return []
    if places is None:
        raise _CannotBind("the toolkit cannot tell where the paths of this tool lead")
    if tool.consent is not None:
        for rule in tool.consent.rules:
            if rule.only_writes and any(map(rule.concerns, places)):
                raise _CannotBind("each change of such a file may be other code that runs for you later")
    for place in places:
        if place.real is None:
            raise _CannotBind(f"{place.text!r} leads to no place that could be remembered")
        rules.append(_path_rule(tool.name, place))
    for does, is_written in (("writing", True), ("reading", False)):
        shown = [place.shown or place.text for place in places if place.is_written is is_written]
        if shown:
            words.append(f"{does} {', '.join(shown)}")
    return sorted([place.is_written, ["/".join(names) for names in place.places]] for place in places)


def _path_rule(name: str, place: LocatedPath) -> Rule[Any] | None:
    """An allow rule on the place; None if a pattern cannot say it: in a pattern, ``*`` and ``?`` stand for other names."""
    assert place.real is not None
    names = "/".join(place.real.below[0]) if place.real.in_workspace else "/".join(("", *place.places[-1]))
    if "*" in names or "?" in names:
        return None
    try:
        # Without the dot, a name alone would match at any depth.
        path = names if names.startswith("/") else f"./{names}" if names else "**"
        return Rule("allow", tools=[name], path=path)
    except PolicyError:
        return None


def _bind_commands(
    name: str, preview: Preview, files: SandboxFS, words: list[str], rules: list[Rule[Any] | None]
) -> list[Any]:
    from toolkit.guard.policy.commands import TouchedCommands, spell, write_rule

    touched = TouchedCommands.from_preview(preview)
    texts = [spell(command) for command in touched.commands or ()]
    if not touched.is_readable or None in texts:
        raise _CannotBind(
            "only commands that are written out can be remembered: these may run something else next time (globs,"
            " variables, $(…), loops, a shell that reads what it runs)"
        )
    for text in texts:
        try:
            rules.append(None if text is None else Rule("allow", tools=[name], command=text))
        except PolicyError:
            rules.append(None)
    said = preview.shell if preview.shell is not None else write_rule(preview.argv or ())
    words.append(f"running exactly: {said if said is not None else json.dumps(preview.argv, ensure_ascii=False)}")
    folder = "."
    if not touched.in_workspace:
        place = files.locate(preview.cwd)
        if place.real is None or not place.is_directory:
            raise _CannotBind(f"{preview.cwd!r}, where it would start, leads to no folder that could be remembered")
        folder = "/".join(("", *place.places[-1]))
        words[-1] += f" (in {place.shown or preview.cwd})"
    if preview.variables:
        words[-1] += f" (with {', '.join(preview.variables)} as they are here)"
    return [preview.argv, preview.shell, folder, preview.variables]


def _bind_host(name: str, url: str, words: list[str], rules: list[Rule[Any] | None]) -> list[Any]:
    from toolkit.guard.network.hosts import Url

    try:
        read = Url.parse(url)
    except ToolkitError:
        raise _CannotBind("its URL cannot be read") from None
    words.append(f"requesting anything from {read.scheme}://{read.authority}")
    try:
        rules.append(Rule("allow", tools=[name], host=read.host.text))
    except PolicyError:
        rules.append(None)
    return [read.scheme, read.host.text, read.port]


def _other_arguments(tool: Tool, args: BaseModel, *, runs: bool, requests: bool) -> dict[str, Any]:
    """The arguments that the paths, the commands and the host do not stand for."""
    given: dict[str, Any] = args.model_dump(mode="json", exclude_defaults=True)
    if tool.preview is not None:  # it says what is touched, but not which arguments say that
        return given
    kinds = [kind for _, kind in tool.info.resources]
    dropped = {
        field
        for field, kind in tool.info.resources
        if kind in ("read-path", "write-path", "cwd") or (kind in ("argv", "shell", "url") and kinds.count(kind) == 1)
    }
    if runs or requests:
        dropped |= _LIMITS
    if runs:
        dropped |= _COMMENTS
    return {key: value for key, value in given.items() if key not in dropped}


# -- where it is kept --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RememberedApproval:
    """One approval that answers later calls, too."""

    id: str
    tool: str
    covers: str
    """What it covers, in words."""
    rules: tuple[str, ...]
    """The allow rules that say it, as far as rules can."""
    scope: Scope
    time: str
    """When it was given, in UTC."""
    agent: str
    session: str
    key: str

    @classmethod
    def make(cls, tool: str, bound: Bound, scope: Scope, *, agent: str, session: str) -> RememberedApproval:
        """The record of an approval that was given now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rules = tuple(map(repr, bound.rules))
        return cls(secrets.token_hex(4), tool, bound.words, rules, scope, now, agent, session, bound.key)

    @property
    def because(self) -> str:
        """It as the reason of a verdict."""
        until = "always" if self.scope == "always" else "for this session"
        return f"remembered: approved {until} on {self.time[:10]} ({self.id}): {self.covers}"


class RememberedApprovals:
    """The approvals that are always remembered in one workspace.

    :param workspace: its real path, and what distinguishes it from another folder in its place (``identify_folder``).
    :param roots: directories that tools can reach; the file must not be inside one.
    """

    def __init__(self, workspace: tuple[str, str], roots: Iterable[str]) -> None:
        self._workspace: Final = workspace
        self._directory: Final = StateDirectory(None, roots)
        self._name: Final = digest_of("\n".join(workspace))

    def read(self) -> list[RememberedApproval]:
        """All of them, the oldest first. Raises ``SetupError`` if the file cannot be read."""
        if self._directory.existing(REMEMBERED_APPROVALS) is None:
            return []
        with self._using() as files:
            return self._read(files)

    def find(self, key: str) -> RememberedApproval | None:
        """The one that covers this."""
        return next((one for one in self.read() if one.key == key), None)

    def add(self, approval: RememberedApproval) -> RememberedApproval:
        """Keeps it; returns the one that covers the same, if there is one."""
        with self._using() as files, files.locked():
            kept = self._read(files)
            same = next((one for one in kept if one.key == approval.key), None)
            if same is not None:
                return same
            if len(kept) >= _MAX_KEPT:
                raise SetupError(
                    f"{_MAX_KEPT} approvals are remembered in this workspace already; revoke some with"
                    " `toolkit policy remembered --revoke ID`"
                )
            self._write(files, [*kept, approval])
            return approval

    def revoke(self, ids: Collection[str] | None = None) -> list[RememberedApproval]:
        """Removes those with these ids, or all; returns them."""
        if self._directory.existing(REMEMBERED_APPROVALS) is None:
            return []
        with self._using() as files, files.locked():
            kept = self._read(files)
            revoked = [one for one in kept if ids is None or one.id in ids]
            if revoked:
                self._write(files, [one for one in kept if one not in revoked])
            return revoked

    @contextmanager
    def _using(self) -> Iterator[PrivateFiles]:
        folder = self._directory.folder(REMEMBERED_APPROVALS)
        try:
            yield PrivateFiles(folder, float("inf"))
        except OSError as error:
            raise SetupError(f"the remembered approvals in {folder!r} cannot be used: {reason_of(error)}") from error

    def _write(self, files: PrivateFiles, approvals: Sequence[RememberedApproval]) -> None:
        path, identity = self._workspace
        kept = {"version": _VERSION, "workspace": path, "identity": identity, "approvals": [*map(asdict, approvals)]}
        files.write(self._name, json.dumps(kept, indent=1).encode(), expires=None)

    def _read(self, files: PrivateFiles) -> list[RememberedApproval]:
        data = files.read(self._name)
        if data is None:
            return []
        try:
            kept = json.loads(data)
            if kept["version"] != _VERSION or (kept["workspace"], kept["identity"]) != self._workspace:
                raise ValueError
            return [_read_approval(one) for one in kept["approvals"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            file = f"{self._directory.path(REMEMBERED_APPROVALS)}/{self._name}.json"
            raise SetupError(
                f"the remembered approvals in {file!r} cannot be read: the file is damaged, or from another version of the"
                " toolkit. None of them counts until you repair or remove it"
            ) from None


def _read_approval(found: Mapping[str, Any]) -> RememberedApproval:
    values = {field.name: found[field.name] for field in fields(RememberedApproval)}
    values["rules"] = tuple(values["rules"])
    if not all(isinstance(text, str) for text in (*values.pop("rules"), *values.values())) or len(found["key"]) != 64:
        raise ValueError
    return RememberedApproval(rules=tuple(found["rules"]), **values)


# -- for one toolkit ---------------------------------------------------------------------------------------------------


class ApprovalMemory:
    """What a toolkit remembers: in memory for its session, and in the user's file for its workspace."""

    def __init__(
        self, session: dict[str, RememberedApproval], workspace: tuple[str, str], roots: Iterable[str]
    ) -> None:
        self.workspace: Final = workspace
        self._session: Final = session
        self._roots: Final = tuple(roots)

    def find(self, bound: Bound) -> RememberedApproval | None:
        """The approval that answers for this. If the user's file cannot be read, people are asked as before."""
        if not bound.words:
            return None
        found = self._session.get(bound.key)
        if found is not None:
            return found
        try:
            return RememberedApprovals(self.workspace, self._roots).find(bound.key)
        except SetupError as error:
            import logging

            logging.getLogger("toolkit").warning("approvals that were remembered do not count: %s", error)
            return None

    def keep(self, tool: str, bound: Bound, scope: Scope, *, agent: str, session: str) -> None:
        """Remembers an approval that was just given. If that fails the call is refused: it was approved to be remembered."""
        approval = RememberedApproval.make(tool, bound, scope, agent=agent, session=session)
        if scope == "session":
            self._session[bound.key] = approval
            return
        try:
            RememberedApprovals(self.workspace, self._roots).add(approval)
        except SetupError as error:
            import logging

            logging.getLogger("toolkit").error("an approval could not be remembered: %s", error)
            raise ToolNotAllowed(
                f"{tool!r} was approved to be remembered, but the file of remembered approvals cannot be used (the log says"
                " why); nothing was run. The user can approve the call once",
                tool_name=tool,
            ) from error
