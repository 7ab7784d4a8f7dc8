"""``git status`` for a repository that is not trusted, by what ``ProcessGuard`` may run and ``FileGuard`` may read.

Promise: nothing that the repository configures is run (monitors, hooks, filters, pagers, fetches from a promisor remote),
nothing is written, and no name outside the workspace is shown. Git runs read-only, offline and in the sandbox. A repository
whose directory, work tree or included configuration is outside the workspace is refused. Where there is no sandbox, the same
settings apply, and a repository with filters or includes is refused as well. Git reads the same repository that was checked:
it would ignore a ``.git`` that is not a repository and continue above it, so such a ``.git`` is refused.

Limit: filters are switched off, so a file that they would clean is shown as changed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname
from typing import Final, NamedTuple

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.files.guard import FileGuard
from toolkit.guard.files.handles import Check
from toolkit.guard.process.guard import ProcessGuard, ProcessResult
from toolkit.visible import display

_TIMEOUT: Final = 60.0
_MAX_OUTPUT: Final = 32 << 20
_MAX_POINTER: Final = 8192
_MAX_DEPTH: Final = 256

_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # an empty list: no transport at all
}
_SETTINGS: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "safe.bareRepository": "explicit",
}
_STATUS: Final = (
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--renames",
    "--ignore-submodules=all",
    "--untracked-files=normal",
)
_FILTER_OFF: Final = {"clean": "", "smudge": "", "process": "", "required": "false"}

# Slightly stricter than what git accepts as the head of a repository.
_HEAD: Final = re.compile(rb"ref: refs/|[0-9a-f]{40}")
_MAX_HEAD: Final = 255


class GitChange(NamedTuple):
    """One changed path below the repository's root, git's status letters for it, and its name before a rename."""

    path: str
    status: str
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class GitStatus:
    """The status of a repository. Paths are relative to ``repository_root``, which is relative to the workspace.

    ``branch`` is None if the head is detached; ``head`` is None before the first commit. ``upstream_gone`` means that an
    upstream is configured but that branch does not exist. ``hidden`` counts the changes that are denied or
    need approval; they are neither in the lists nor in ``raw``, which is otherwise git's own output.
    """

    repository_root: str
    branch: str | None
    detached: bool
    head: str | None
    upstream: str | None
    upstream_gone: bool
    ahead: int
    behind: int
    staged: tuple[GitChange, ...]
    unstaged: tuple[GitChange, ...]
    untracked: tuple[GitChange, ...]
    conflicted: tuple[GitChange, ...]
    hidden: int
    clean: bool
    raw: bytes

    def lines(self) -> Iterator[str]:
        """``raw`` in readable form: one record per line, with both names of a rename; invisible characters are escaped."""
        for record in _read_records(self.raw):
            old = "" if record.old_path is None else f"\t{display(record.old_path)}"
            yield f"{record.kind} {display(record.rest)}{old}"


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting of the repository's own configuration; ``origin`` is its file."""

    key: str
    value: str
    origin: str


class GitGuard:
    """Reads repositories in the workspace of ``process``. Runs only ``git status`` and ``git config --list``."""

    def __init__(self, process: ProcessGuard) -> None:
        self._process = process.for_git()
        self._sandboxed = process.tier != "none"
        self._fs = process.fs
        self._deny_fs = self._fs

    def __repr__(self) -> str:
        return f"<GitGuard {self._process.workspace!r}>"

    def with_check(self, check: Check) -> GitGuard:
        """A view that keeps calling ``check`` while git runs."""
        view = copy.copy(self)
        view._process = self._process.with_check(check)
        view._fs = self._fs.with_check(check)
        return view

    def with_deny_of(self, fs: FileGuard) -> GitGuard:
        """A view that leaves out, and counts, what ``fs`` would not list; ``fs`` has the same workspace."""
        view = copy.copy(self)
        view._deny_fs = fs
        return view

    def status(self, cwd: str = ".") -> GitStatus:
        """The status of the repository that ``cwd``, a path in the workspace, belongs to."""
        top, directory, common = self._find_repository(cwd)
        settings = [*self._list_file(f"{common}/config"), *self._list_file(f"{directory}/config.worktree")]
        root = self._check_settings(settings, top, directory)
        if any(map(_is_include, settings)):
            # Only now, when all includes are known to be inside: git lists those that apply, and their own includes.
            settings += self._list_settings(cwd, ("--includes",), {})
            self._check_settings(settings, top, directory)
        result = self._run_git(cwd, _STATUS, {**_SETTINGS, **_disabled_filters(settings)}, {})
        return self._parse_status(result.stdout, self._relative_to_workspace(root))

    def _find_repository(self, cwd: str) -> tuple[str, str, str]:
        """The directory with ``.git`` in it, the git directory, and the one it shares with other work trees.

        All are paths that have to be resolved in the workspace.
        """
        self._fs.open_dir(cwd).close()
        folder = cwd
        for _ in range(_MAX_DEPTH):
            pointer = f"{folder}/.git"
            try:
                kind = self._fs.stat(pointer).kind
            except ToolFailed:
                folder = f"{folder}/.."
                try:
                    self._fs.open_dir(folder).close()
                except SandboxViolation:
                    break  # above the workspace
                continue
            directory = pointer if kind == "directory" else self._follow_pointer(folder, pointer, b"gitdir: ")
            common = self._find_common(directory)
            self._refuse_incomplete(directory, common)
            return folder, directory, common
        raise _not_a_repository()

    def _find_common(self, directory: str) -> str:
        """The directory that all work trees of the repository share."""
        pointer = f"{directory}/commondir"
        try:
            self._fs.stat(pointer)
        except ToolFailed:
            return directory
        return self._follow_pointer(directory, pointer, b"")

    def _follow_pointer(self, folder: str, pointer: str, prefix: bytes) -> str:
        """The path that a file contains; it must be in the workspace."""
        try:
            with self._fs.open_file(pointer) as file:
                text = file.read(_MAX_POINTER)
        except ToolFailed:
            raise _not_a_repository() from None
        if not text.startswith(prefix):
            raise _not_a_repository()
        return self._require_inside(folder, _decode(text[len(prefix) :].rstrip(b"\r\n")))

    def _refuse_incomplete(self, directory: str, common: str) -> None:
        """Refuse what git might not accept as a repository: git would continue above it, to one that was not checked."""
        try:
            with self._fs.open_dir(directory) as folder:
                head = next((entry for entry in folder.entries() if entry.raw == "HEAD"), None)
                if head is None:
                    raise _not_a_repository()
                with folder.open_child_file(head) as file:
                    is_head = _HEAD.match(file.read(_MAX_HEAD)) is not None
            complete = is_head and all(self._can_enter(f"{common}/{name}") for name in ("objects", "refs"))
        except ToolFailed:
            complete = False
        if not complete:
            raise _not_a_repository()

    def _can_enter(self, path: str) -> bool:
        """Whether names in that directory can be looked up, as git does; ``ToolFailed`` if it is not a directory."""
        self._fs.open_dir(path).close()
        try:
            self._fs.stat(f"{path}/HEAD")
        except ToolFailed as error:
            return error.reason == "NOT_FOUND"
        return True

    def _require_inside(self, folder: str, target: str) -> str:
        """``target`` relative to ``folder``; ``SandboxViolation`` if it is not in the workspace."""
        path = target if target.startswith("/") else f"{folder}/{target}"
        try:
            self._fs.stat(path)
        except SandboxViolation:
            raise SandboxViolation(
                "the repository is not read: its git directory, work tree or an included file is outside the workspace"
            ) from None
        except ToolFailed:
            return path  # it is missing, and git will report that
        return path

    def _list_file(self, path: str) -> list[_Setting]:
        """The settings of one configuration file, without its includes and outside of any repository."""
        try:
            self._fs.stat(path)
        except ToolFailed:
            return []
        name = path if path.startswith("/") else f"{self._process.workspace}/{path}"
        return self._list_settings(".", ("--no-includes", "--file", name), {"GIT_DIR": "/dev/null"})

    def _list_settings(self, cwd: str, which: tuple[str, ...], variables: dict[str, str]) -> list[_Setting]:
        """The configuration as git reads it. Listing does not run anything."""
        arguments = ("config", "--list", "-z", "--show-scope", "--show-origin", *which)
        fields = _decode(self._run_git(cwd, arguments, _SETTINGS, variables).stdout).split("\0")
        settings = []
        for _scope, origin, line in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            key, _, value = line.partition("\n")
            settings.append(_Setting(key, value, origin.removeprefix("file:")))
        return settings

    def _check_settings(self, settings: list[_Setting], top: str, directory: str) -> str:
        """Refuse settings that lead outside. Returns the root of the work tree."""
        root = top
        for setting in settings:
            included = _is_include(setting)
            if not self._sandboxed and (included or setting.key.startswith("filter.")):
                raise SandboxViolation(
                    "the repository is not read: it has filters or includes, and there is no sandbox"
                )
            if setting.key == "core.worktree":
                root = self._require_inside(directory, setting.value)
            elif included:
                if setting.value.startswith("~"):
                    raise SandboxViolation(
                        "the repository is not read: it includes configuration from a home directory"
                    )
                origin = dirname(setting.origin) or "."
                self._require_inside(origin if origin.startswith("/") else f"{top}/{origin}", setting.value)
        return root

    def _run_git(
        self, cwd: str, arguments: tuple[str, ...], settings: dict[str, str], more: dict[str, str]
    ) -> ProcessResult:
        ceiling = dirname(self._process.workspace)
        variables = {**_ENVIRONMENT, **more, "GIT_CEILING_DIRECTORIES": ceiling, "GIT_CONFIG_COUNT": str(len(settings))}
        for index, (key, value) in enumerate(settings.items()):
            variables[f"GIT_CONFIG_KEY_{index}"] = key
            variables[f"GIT_CONFIG_VALUE_{index}"] = value
        # Through env(1), because no caller may pass GIT_* variables to a command, not even this one.
        assignments = [f"{name}={value}" for name, value in variables.items()]
        result = self._process.run(
            ["env", *assignments, "git", "--no-optional-locks", "--no-pager", *arguments],
            cwd=cwd,
            timeout=_TIMEOUT,
            max_output=_MAX_OUTPUT,
        )
        if result.timed_out:
            raise ToolFailed("IO", f"git did not finish within {_TIMEOUT:.0f} seconds")
        if result.stdout_truncated:
            raise ToolFailed(
                "TOO_LARGE",
                "the repository has too many changes to list; run git status as a command, on a subdirectory",
            )
        if result.exit_code == 127:
            raise ToolFailed("COMMAND_NOT_FOUND", "'git' is not installed, or is not visible inside the sandbox")
        if result.exit_code != 0:
            raise _to_failure(result.stderr)
        return result

    def _relative_to_workspace(self, root: str) -> str:
        """The path of the work tree's root, for display; it is never opened by this path."""
        real = self._fs.locate(root).real
        if real is None or not real.in_workspace:
            raise _not_a_repository()
        return "/".join(real.below[0]) or "."

    def _parse_status(self, raw: bytes, root: str) -> GitStatus:
        header: dict[str, str] = {}
        changes: dict[str, list[GitChange]] = {"staged": [], "unstaged": [], "untracked": [], "conflicted": []}
        kept: list[bytes] = []
        hidden = 0
        for record in _read_records(raw):
            if record.kind == "#":
                name, _, value = record.rest.partition(" ")
                header[name] = value
            elif self._deny_fs.hides(f"{root}/{record.path}"):
                hidden += 1
                continue
            else:
                old = record.old_path
                if old is not None and self._deny_fs.hides(f"{root}/{old}"):
                    record = record._replace(old_path="")
                for place, change in _changes_in(record):
                    changes[place].append(change)
            kept.append(record.raw())
        branch, head = header.get("branch.head", ""), header.get("branch.oid", "(initial)")
        ahead, _, behind = header.get("branch.ab", "+0 -0").partition(" ")
        return GitStatus(
            repository_root=display(root),
            branch=None if branch == "(detached)" else display(branch),
            detached=branch == "(detached)",
            head=None if head == "(initial)" else head,
            upstream=display(header["branch.upstream"]) if "branch.upstream" in header else None,
            upstream_gone="branch.upstream" in header and "branch.ab" not in header and head != "(initial)",
            ahead=int(ahead),
            behind=-int(behind),
            staged=tuple(changes["staged"]),
            unstaged=tuple(changes["unstaged"]),
            untracked=tuple(changes["untracked"]),
            conflicted=tuple(changes["conflicted"]),
            hidden=hidden,
            clean=not hidden and not any(changes.values()),
            raw=b"".join(kept),
        )


def _decode(text: bytes) -> str:
    """Paths as the rest of Python has them: what is not UTF-8 can be encoded again."""
    return text.decode(errors="surrogateescape")


def _is_include(setting: _Setting) -> bool:
    return setting.key.startswith(("include.", "includeif.")) and setting.key.endswith(".path")


def _disabled_filters(settings: list[_Setting]) -> dict[str, str]:
    """Settings that switch off every filter of the repository."""
    names = {key.rpartition(".")[0] for key in (setting.key for setting in settings) if key.startswith("filter.")}
    return {f"{name}.{option}": value for name in sorted(names) for option, value in _FILTER_OFF.items()}


def _to_failure(stderr: bytes) -> ToolFailed:
    """The failure that git reports. Its own message is left out, because it may name paths outside."""
    if b"dubious ownership" in stderr:
        return ToolFailed("PERMISSION_DENIED", "the repository belongs to another user, so git does not trust it")
    return _not_a_repository()


def _not_a_repository() -> ToolFailed:
    problem = "no complete, readable '.git' in this directory or above it, up to the root of the workspace"
    return ToolFailed("NOT_GIT_REPOSITORY", f"this is not a git repository: {problem}")


# How many fields are before the path in each kind of record.
_FIELDS: Final = {"1": 7, "2": 8, "u": 9, "?": 0}


class _Record(NamedTuple):
    """One record of ``git status``: its kind, its other fields, and the second name of a rename."""

    kind: str
    rest: str
    old_path: str | None = None

    @property
    def path(self) -> str:
        return self.rest.split(" ", _FIELDS[self.kind])[-1]

    def raw(self) -> bytes:
        """The record as git wrote it."""
        old = "" if self.old_path is None else f"{self.old_path}\0"
        return f"{self.kind} {self.rest}\0{old}".encode(errors="surrogateescape")


def _read_records(raw: bytes) -> Iterator[_Record]:
    fields = iter(_decode(raw).split("\0"))
    for field in fields:
        kind, _, rest = field.partition(" ")
        if kind == "#" or kind in _FIELDS:
            yield _Record(kind, rest, next(fields, "") if kind == "2" else None)


def _changes_in(record: _Record) -> Iterator[tuple[str, GitChange]]:
    """The changes of one record, each with the list it belongs to. A file may be staged and then changed again."""
    path = display(record.path)
    if record.kind == "?":
        yield "untracked", GitChange(path, "?")
    elif record.kind == "u":
        yield "conflicted", GitChange(path, record.rest[:2])
    else:
        old = display(record.old_path) if record.old_path else None
        for place, state in zip(("staged", "unstaged"), record.rest[:2], strict=True):
            if state != ".":
                yield place, GitChange(path, state, old if state in "RC" else None)
