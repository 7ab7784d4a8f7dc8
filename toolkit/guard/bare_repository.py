"""Repositories that are not called ``.git``: a directory is one as soon as it has the right names in it.

``git status`` in such a directory, or below it, obeys the ``config`` there, which can name a program to run. So the name that
would complete a repository is not written, whichever comes last, and what git reads in a complete one is not changed.

Limits: among threads of this process. A directory that only ``commondir`` of another one leads to has no ``HEAD`` and is not
recognized.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit.errors import SandboxViolation
from toolkit.guard.files.consent import fold, fold_all
from toolkit.guard.files.path import display

if TYPE_CHECKING:
    from toolkit.guard.files.handles import Names, Place

# git looks for these by exact spelling, and a file system that ignores case finds them by any.
_HEAD: Final = "HEAD"
_COMPLETING: Final = (_HEAD, "objects", "refs", "commondir")
# What git reads and writes at the top of a repository. Other names there are not its own: a work tree, for example.
_OWN: Final = frozenset(
    (
        *("head", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "remotes", "branches"),
        *(
            "modules",
            "worktrees",
            "info",
            "logs",
            "packed-refs",
            "reftable",
            "index",
            "shallow",
            "gitdir",
            "description",
        ),
        *("lfs", "rebase-merge", "rebase-apply", "sequencer"),
    )
)
# While a name that may complete a repository is written, no other thread writes one.
_completing = threading.RLock()


@dataclass(frozen=True, slots=True)
class ChangedName:
    """A name that is about to be changed: how it is shown, and its real path, of which the first ``top`` names are the
    outermost root and the first ``existing`` names the directory that ``folder`` is a descriptor of."""

    shown: str
    real: Names
    top: int
    existing: int
    folder: int

    @classmethod
    def at(cls, place: Place, real: Names, top: int, shown: str) -> ChangedName:
        missing = len(place.missing) + (place.name is not None)
        return cls(shown, real, top, len(real) - missing, place.folder)

    def own_names(self) -> Iterator[int]:
        """Where in the real path there are names that git uses."""
        return (at for at in range(self.top, len(self.real)) if not _OWN.isdisjoint(fold(self.real[at])))


@contextmanager
def without_repositories(changes: Sequence[ChangedName]) -> Iterator[None]:
    """Refuse changes that, all together, complete or change a repository. Make them inside of the block."""
    concerned = [(change, list(change.own_names())) for change in changes]
    if not any(places for _, places in concerned):
        yield
        return
    with _completing:
        for change, places in concerned:
            for at in places:
                if _is_repository({*_present(change, at), *_added(changes, change.real[:at])}):
                    raise _refusal(change, at)
        yield


def _is_repository(names: set[str]) -> bool:
    return "head" in names and ("commondir" in names or {"objects", "refs"} <= names)


def _present(change: ChangedName, at: int) -> Iterator[str]:
    """Which of the names that make a repository exist in the directory above the name at this place."""
    if at > change.existing:
        return
    above = "../" * (change.existing - at)
    for name in _COMPLETING:
        try:
            info = os.stat(above + name, dir_fd=change.folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if name != _HEAD or not stat.S_ISDIR(info.st_mode):
            yield name.lower()


def _added(changes: Iterable[ChangedName], folder: Names) -> Iterator[str]:
    """Which names the changes would add to this directory. A directory called ``head`` is none that git looks for."""
    depth, folded = len(folder), fold_all(folder)
    for change in changes:
        if len(change.real) > depth and fold_all(change.real[:depth]) == folded:
            is_last = len(change.real) == depth + 1
            yield from (name for name in fold(change.real[depth]) if is_last or name != "head")


def _refusal(change: ChangedName, at: int) -> SandboxViolation:
    repository = display("/".join(change.real[change.top : at]) or ".")
    return SandboxViolation(
        f"'{change.shown}' is protected: '{repository}' is a git repository, or would become one, and git runs programs "
        'that its settings name; use git in a command, or set ToolkitContext(git="write")'
    )


def _start_again_in_child() -> None:
    global _completing
    _completing = threading.RLock()


os.register_at_fork(after_in_child=_start_again_in_child)
