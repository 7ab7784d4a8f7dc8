"""``git status`` for a repository nobody has vouched for.

Promise: nothing the repository configures is run (monitors, hooks, filters, pagers, fetches from a promised remote),
nothing is written, and no name outside the workspace is shown: read-only, offline, in the sandbox. A repository whose
directory, work tree or included configuration lies outside the workspace is refused. Where there is no sandbox, the
same settings hold, and a repository with filters or includes is refused as well.

Limit: with filters switched off, a file they would clean shows as changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.fs import SandboxFS
from toolkit.guard.path import display
from toolkit.guard.process import ProcessGuard, ProcessResult

Change = tuple[str, str]  # path below the repository's root, status letter or letters

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


@dataclass(frozen=True, slots=True)
class GitStatus:
    """Where a repository stands. Paths are relative to ``repository_root``, itself relative to the workspace.

    ``branch`` is None when the head is detached, ``head`` None before the first commit. ``raw`` is what git wrote.
    """

    repository_root: str
    branch: str | None
    detached: bool
    head: str | None
    upstream: str | None
    ahead: int
    behind: int
    staged: tuple[Change, ...]
    unstaged: tuple[Change, ...]
    untracked: tuple[Change, ...]
    conflicted: tuple[Change, ...]
    clean: bool
    raw: bytes


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
        return _parsed(result.stdout, self._shown(root))

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
            directory = pointer if kind == "directory" else self._follow(folder, pointer, b"gitdir: ")
            return folder, directory, self._follow(directory, f"{directory}/commondir", b"")
        raise _no_repository()

    def _follow(self, folder: str, pointer: str, prefix: bytes) -> str:
        """Where a file with a path in it leads, which must be in the workspace; ``folder`` itself without the file."""
        try:
            with self._fs.open_file(pointer) as file:
                text = file.read(_MAX_POINTER)
        except ToolFailed:
            return folder
        if not text.startswith(prefix):
            raise _no_repository()
        return self._inside(folder, os.fsdecode(text[len(prefix) :].rstrip(b"\r\n")))

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

    def _shown(self, root: str) -> str:
        """The work tree's root for the reader; only its text, nothing is opened by it."""
        real = os.path.realpath(os.path.join(self._process.workspace, root))
        return display(os.path.relpath(real, self._process.workspace))


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
    return ToolFailed("NOT_GIT_REPOSITORY", "this is no git repository with a work tree, or not one that can be read")


def _parsed(raw: bytes, root: str) -> GitStatus:
    header: dict[str, str] = {}
    changes: dict[str, list[Change]] = {"staged": [], "unstaged": [], "untracked": [], "conflicted": []}
    for kind, rest in _entries(raw):
        if kind == "#":
            name, _, value = rest.partition(" ")
            header[name] = value
        elif kind in ("1", "2"):
            states, path = rest[:2], display(rest.split(" ", 7 if kind == "1" else 8)[-1])
            for place, state in zip(("staged", "unstaged"), states, strict=True):
                if state != ".":
                    changes[place].append((path, state))
        elif kind == "u":
            changes["conflicted"].append((display(rest.split(" ", 9)[-1]), rest[:2]))
        elif kind == "?":
            changes["untracked"].append((display(rest), "?"))
    branch, head = header.get("branch.head", ""), header.get("branch.oid", "(initial)")
    ahead, _, behind = header.get("branch.ab", "+0 -0").partition(" ")
    return GitStatus(
        repository_root=root,
        branch=None if branch == "(detached)" else display(branch),
        detached=branch == "(detached)",
        head=None if head == "(initial)" else head,
        upstream=display(header["branch.upstream"]) if "branch.upstream" in header else None,
        ahead=int(ahead),
        behind=-int(behind),
        staged=tuple(changes["staged"]),
        unstaged=tuple(changes["unstaged"]),
        untracked=tuple(changes["untracked"]),
        conflicted=tuple(changes["conflicted"]),
        clean=not any(changes.values()),
        raw=raw,
    )


def _entries(raw: bytes) -> Iterator[tuple[str, str]]:
    """Each record as its kind and the rest; a rename's second name, a record of its own, is left out."""
    fields = iter(os.fsdecode(raw).split("\0"))
    for field in fields:
        kind, _, rest = field.partition(" ")
        if kind == "2":
            next(fields, None)
        if rest:
            yield kind, rest
