"""``git status`` for a repository nobody has vouched for.

Promise: nothing the repository configures is run (monitors, hooks, filters, pagers, fetches from a promised remote),
nothing is written, and no name outside the workspace is shown: read-only, offline, in the sandbox. A repository whose
directory, work tree or included configuration lies outside the workspace is refused. Where there is no sandbox, the
same settings hold, and a repository with filters or includes is refused as well. The repository that is asked is the
one that was looked at: git passes over a ``.git`` that is no repository and goes on above it, so such a one is refused.

Limit: with filters switched off, a file they would clean shows as changed.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.fs.handles import Check
from toolkit.guard.fs.path import display
from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.process.guard import ProcessGuard, ProcessResult

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

# What git takes for the head of a repository, and a little less.
_HEAD: Final = re.compile(rb"ref: refs/|[0-9a-f]{40}")
_MAX_HEAD: Final = 255


class Change(NamedTuple):
    """One changed path below the repository's root, git's letter or letters for it, and its name before a rename."""

    path: str
    status: str
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class GitStatus:
    """Where a repository stands. Paths are relative to ``repository_root``, itself relative to the workspace.

    ``branch`` is None when the head is detached, ``head`` None before the first commit. ``upstream_gone`` says that the
    upstream is configured, but there is no such branch to be ahead of or behind. ``hidden`` counts the changes that a deny
    rule covers; they are in none of the lists and not in ``raw``, which else is what git wrote.
    """

    repository_root: str
    branch: str | None
    detached: bool
    head: str | None
    upstream: str | None
    upstream_gone: bool
    ahead: int
    behind: int
    staged: tuple[Change, ...]
    unstaged: tuple[Change, ...]
    untracked: tuple[Change, ...]
    conflicted: tuple[Change, ...]
    hidden: int
    clean: bool
    raw: bytes

    def lines(self) -> Iterator[str]:
        """``raw`` to be read: one record a line, both names of a rename in it, all that is invisible escaped."""
        for record in _records(self.raw):
            old = "" if record.old_path is None else f"\t{display(record.old_path)}"
            yield f"{record.kind} {display(record.rest)}{old}"


@dataclass(frozen=True, slots=True)
class _Setting:
    """One line of the repository's own configuration; ``origin`` is the file it stands in."""

    key: str
    value: str
    origin: str


class GitGuard:
    """Reads repositories in the workspace of ``process``; runs ``git status`` and ``git config --list``, no more."""

    def __init__(self, process: ProcessGuard) -> None:
        self._process = process.for_git()
        self._sandboxed = process.tier != "none"
        self._fs = SandboxFS(process.workspace)
        self._seen = self._fs

    def bound(self, check: Check) -> GitGuard:
        """A view that asks ``check`` all the time git runs."""
        view = copy.copy(self)
        view._process = self._process.bound(check)
        view._fs = self._fs.bound(check)
        return view

    def hiding(self, fs: SandboxFS) -> GitGuard:
        """A view that leaves out and counts what the deny rules of ``fs``, on the same workspace, cover."""
        view = copy.copy(self)
        view._seen = fs
        return view

    def status(self, cwd: str = ".") -> GitStatus:
        """The state of the repository that ``cwd``, a path in the workspace, belongs to."""
        top, directory, common = self._find(cwd)
        settings = [*self._listed(f"{common}/config"), *self._listed(f"{directory}/config.worktree")]
        root = self._check(settings, top, directory)
        if any(map(_is_include, settings)):
            # Only now that all of them are known to lie inside: those that apply, and what they include in turn.
            settings += self._list(cwd, ("--includes",), {})
            self._check(settings, top, directory)
        result = self._git(cwd, _STATUS, {**_SETTINGS, **_filters_off(settings)}, {})
        return self._parsed(result.stdout, self._relative(root))

    def _find(self, cwd: str) -> tuple[str, str, str]:
        """The directory that holds ``.git``, the repository's own, and the one it shares with other work trees.

        All are texts to be resolved in the workspace.
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
            directory = pointer if kind == "directory" else self._followed(folder, pointer, b"gitdir: ")
            common = self._common(directory)
            self._refuse_incomplete(directory, common)
            return folder, directory, common
        raise _no_repository()

    def _common(self, directory: str) -> str:
        pointer = f"{directory}/commondir"
        try:
            self._fs.stat(pointer)
        except ToolFailed:
            return directory
        return self._followed(directory, pointer, b"")

    def _followed(self, folder: str, pointer: str, prefix: bytes) -> str:
        """Where a file with a path in it leads, which must be in the workspace."""
        try:
            with self._fs.open_file(pointer) as file:
                text = file.read(_MAX_POINTER)
        except ToolFailed:
            raise _no_repository() from None
        if not text.startswith(prefix):
            raise _no_repository()
        return self._inside(folder, os.fsdecode(text[len(prefix) :].rstrip(b"\r\n")))

    def _refuse_incomplete(self, directory: str, common: str) -> None:
        """Refuse what git might not take for a repository: it would go on above it, to one nobody has looked at."""
        try:
            with self._fs.open_dir(directory) as folder:
                head = next((entry for entry in folder.entries() if entry.raw == "HEAD"), None)
                if head is None:
                    raise _no_repository()
                with folder.open_child_file(head) as file:
                    is_head = _HEAD.match(file.read(_MAX_HEAD)) is not None
            whole = is_head and all(self._can_be_entered(f"{common}/{name}") for name in ("objects", "refs"))
        except ToolFailed:
            whole = False
        if not whole:
            raise _no_repository()

    def _can_be_entered(self, path: str) -> bool:
        """Whether names in that directory can be looked up, which git tries; ``ToolFailed`` if it is none."""
        self._fs.open_dir(path).close()
        try:
            self._fs.stat(f"{path}/HEAD")
        except ToolFailed as error:
            return error.reason == "NOT_FOUND"
        return True

    def _inside(self, folder: str, target: str) -> str:
        """``target`` as seen from ``folder``; ``SandboxViolation`` when it is not in the workspace."""
        path = target if target.startswith("/") else f"{folder}/{target}"
        try:
            self._fs.stat(path)
        except SandboxViolation:
            raise SandboxViolation("the repository's own directory, work tree or includes lie outside") from None
        except ToolFailed:
            return path  # missing, and git will say so
        return path

    def _listed(self, path: str) -> list[_Setting]:
        """What one configuration file says, without its includes and outside of any repository."""
        try:
            self._fs.stat(path)
        except ToolFailed:
            return []
        name = path if path.startswith("/") else os.path.join(self._process.workspace, path)
        return self._list(".", ("--no-includes", "--file", name), {"GIT_DIR": "/dev/null"})

    def _list(self, cwd: str, which: tuple[str, ...], variables: dict[str, str]) -> list[_Setting]:
        """Configuration as git reads it; listing runs nothing of it."""
        arguments = ("config", "--list", "-z", "--show-scope", "--show-origin", *which)
        fields = os.fsdecode(self._git(cwd, arguments, _SETTINGS, variables).stdout).split("\0")
        settings = []
        for _scope, origin, line in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            key, _, value = line.partition("\n")
            settings.append(_Setting(key, value, origin.removeprefix("file:")))
        return settings

    def _check(self, settings: list[_Setting], top: str, directory: str) -> str:
        """Refuse what reaches outside; the answer is the root of the work tree."""
        root = top
        for setting in settings:
            included = _is_include(setting)
            if not self._sandboxed and (included or setting.key.startswith("filter.")):
                raise SandboxViolation("without a sandbox, a repository with filters or includes is not read")
            if setting.key == "core.worktree":
                root = self._inside(directory, setting.value)
            elif included:
                if setting.value.startswith("~"):
                    raise SandboxViolation("the repository includes configuration of a home directory")
                origin = os.path.dirname(setting.origin) or "."
                self._inside(origin if origin.startswith("/") else f"{top}/{origin}", setting.value)
        return root

    def _git(
        self, cwd: str, arguments: tuple[str, ...], settings: dict[str, str], more: dict[str, str]
    ) -> ProcessResult:
        ceiling = os.path.dirname(self._process.workspace)
        variables = {**_ENVIRONMENT, **more, "GIT_CEILING_DIRECTORIES": ceiling, "GIT_CONFIG_COUNT": str(len(settings))}
        for index, (key, value) in enumerate(settings.items()):
            variables[f"GIT_CONFIG_KEY_{index}"] = key
            variables[f"GIT_CONFIG_VALUE_{index}"] = value
        # Through env(1), because no caller may hand GIT_* to a command, and this one is no exception.
        assignments = [f"{name}={value}" for name, value in variables.items()]
        result = self._process.run(
            ["env", *assignments, "git", "--no-optional-locks", "--no-pager", *arguments],
            cwd=cwd,
            timeout=_TIMEOUT,
            max_output=_MAX_OUTPUT,
        )
        if result.timed_out:
            raise ToolFailed("IO", f"git did not answer within {_TIMEOUT:.0f} seconds")
        if result.stdout_truncated:
            raise ToolFailed("TOO_LARGE", "the repository has too many changes to list")
        if result.exit_code == 127:
            raise ToolFailed("COMMAND_NOT_FOUND", "'git' does not exist, or cannot be seen from inside the sandbox")
        if result.exit_code != 0:
            raise _failure(result.stderr)
        return result

    def _relative(self, root: str) -> str:
        """The work tree's root, seen from the workspace; only its text, nothing is opened by it."""
        real = os.path.realpath(os.path.join(self._process.workspace, root))
        return os.path.relpath(real, self._process.workspace)

    def _parsed(self, raw: bytes, root: str) -> GitStatus:
        header: dict[str, str] = {}
        changes: dict[str, list[Change]] = {"staged": [], "unstaged": [], "untracked": [], "conflicted": []}
        kept: list[bytes] = []
        hidden = 0
        for record in _records(raw):
            if record.kind == "#":
                name, _, value = record.rest.partition(" ")
                header[name] = value
            elif self._seen.hides(f"{root}/{record.path}"):
                hidden += 1
                continue
            else:
                old = record.old_path
                if old is not None and self._seen.hides(f"{root}/{old}"):
                    record = record._replace(old_path="")
                for place, change in _changes(record):
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


def _is_include(setting: _Setting) -> bool:
    return setting.key.startswith(("include.", "includeif.")) and setting.key.endswith(".path")


def _filters_off(settings: list[_Setting]) -> dict[str, str]:
    names = {key.rpartition(".")[0] for key in (setting.key for setting in settings) if key.startswith("filter.")}
    return {f"{name}.{option}": value for name in sorted(names) for option, value in _FILTER_OFF.items()}


def _failure(stderr: bytes) -> ToolFailed:
    """Git's own words may name places outside, so only their kind is told."""
    if b"dubious ownership" in stderr:
        return ToolFailed("PERMISSION_DENIED", "the repository belongs to another user, so git does not trust it")
    return _no_repository()


def _no_repository() -> ToolFailed:
    words = "no complete, readable '.git' in this directory or above it, up to the root of the workspace"
    return ToolFailed("NOT_GIT_REPOSITORY", f"this is no git repository: {words}")


# How many fields stand before the path in each kind of record.
_FIELDS: Final = {"1": 7, "2": 8, "u": 9, "?": 0}


class _Record(NamedTuple):
    """One record of ``git status``: what kind it is, what follows, and the second name of a rename."""

    kind: str
    rest: str
    old_path: str | None = None

    @property
    def path(self) -> str:
        return self.rest.split(" ", _FIELDS[self.kind])[-1]

    def raw(self) -> bytes:
        """The record as git wrote it."""
        old = "" if self.old_path is None else f"{self.old_path}\0"
        return os.fsencode(f"{self.kind} {self.rest}\0{old}")


def _records(raw: bytes) -> Iterator[_Record]:
    fields = iter(os.fsdecode(raw).split("\0"))
    for field in fields:
        kind, _, rest = field.partition(" ")
        if kind == "#" or kind in _FIELDS:
            yield _Record(kind, rest, next(fields, "") if kind == "2" else None)


def _changes(record: _Record) -> Iterator[tuple[str, Change]]:
    """The lists a record belongs to, with what stands there; a file may be staged and changed again."""
    path = display(record.path)
    if record.kind == "?":
        yield "untracked", Change(path, "?")
    elif record.kind == "u":
        yield "conflicted", Change(path, record.rest[:2])
    else:
        old = display(record.old_path) if record.old_path else None
        for place, state in zip(("staged", "unstaged"), record.rest[:2], strict=True):
            if state != ".":
                yield place, Change(path, state, old if state in "RC" else None)
