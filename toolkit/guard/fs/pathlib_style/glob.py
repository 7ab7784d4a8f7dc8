"""Finds paths by a pattern. Links are found, but never followed; the time is linear in what is walked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.files.path import SandboxPath, outside_error
from toolkit.guard.fs.pathlib_style.whole_files import is_nameable, join_names

if TYPE_CHECKING:
    from toolkit.guard.files.handles import SandboxDir

MAX_GLOB_DEPTH: Final = 200
"""How many directories below each other are walked: each of them is open meanwhile."""

_ANY_DEPTH: Final = "**"
_MAGIC: Final = frozenset("*?[")

Part: TypeAlias = "Callable[[str], object] | None"
"""Matches one name; None stands for ``**``, any number of directories."""
States: TypeAlias = frozenset[int]
"""Which parts of the pattern may match the next name."""
OpenDir: TypeAlias = "Callable[[SandboxPath], SandboxDir]"


def glob(path: SandboxPath, open_dir: OpenDir) -> Iterator[str]:
    """The paths that match the pattern ``path``, sorted within each directory."""
    if ".." in path.parts:
        raise outside_error(path.text)
    plain = next((at for at, part in enumerate(path.parts) if _MAGIC & set(part)), len(path.parts))
    depth = min(plain, len(path.parts) - 1)
    if depth < 0:
        return
    top = SandboxPath(path.parts[:depth], root=path.root)
    parts = [_compile(part) for part in path.parts[depth:]]
    try:
        folder = open_dir(top)
    except ToolFailed as error:
        if error.reason in ("NOT_FOUND", "NOT_DIRECTORY"):
            return
        raise
    yield from _walk(folder, top, parts, _with_skipped(parts, 0), only_directories=path.wants_directory)


def _compile(part: str) -> Part:
    return None if part == _ANY_DEPTH else re.compile(fnmatch.translate(part)).match


def _walk(
    folder: SandboxDir, path: SandboxPath, parts: list[Part], states: States, *, only_directories: bool, depth: int = 0
) -> Iterator[str]:
    with folder:
        if depth > MAX_GLOB_DEPTH:
            raise ToolFailed("TOO_LARGE", f"'{folder.path}' has more than {MAX_GLOB_DEPTH} directories above it")
        names = folder.names()
        directories = set(names.directories)
        others = () if only_directories else (*names.files, *names.symlinks, *names.others)
        for name in sorted((*directories, *others)):
            after = _step(parts, states, name)
            if not after or not is_nameable(name):
                continue
            if len(parts) in after:
                yield join_names(path, name)
            if name in directories and after - {len(parts)}:
                below = _open_below(folder, name)
                if below is not None:
                    inner = SandboxPath((*path.parts, name), root=path.root)
                    yield from _walk(
                        below, inner, parts, after, only_directories=only_directories, depth=depth + 1
                    )  # fmt: skip


def _open_below(folder: SandboxDir, name: str) -> SandboxDir | None:
    """The directory with this name; None if it vanished, may not be read, or is hidden from this call."""
    try:
        return folder.child(name)
    except (ToolFailed, SandboxViolation):
        return None


def _step(parts: list[Part], states: States, name: str) -> States:
    """The states after one more name."""
    after: set[int] = set()
    for state in states:
        if state == len(parts):
            continue
        matches = parts[state]
        if matches is None:
            after |= _with_skipped(parts, state)
        elif matches(name):
            after |= _with_skipped(parts, state + 1)
    return frozenset(after)


def _with_skipped(parts: list[Part], state: int) -> States:
    """The state, and those after it that are reached because ``**`` may also stand for nothing."""
    found = {state}
    while state < len(parts) and parts[state] is None:
        state += 1
        found.add(state)
    return frozenset(found)
