"""Changes one name at a time: writes, makes, removes, moves. Several at once are a transaction (``transaction.py``).

Every change takes the same steps: the path is checked, its place is opened, the real path is checked, the lock of the name
is taken, and a change that would complete or alter a git repository is refused. Then one system call changes the name.
What each method promises is said where callers see it, in ``SandboxFS``.

Loaded at the first change: most calls only read.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.files.consent import fold, fold_all
from toolkit.guard.files.handles import SandboxDir
from toolkit.guard.files.path import FileErrors, absolute, already_exists, conflict
from toolkit.guard.files.place import Names, Place, find_place, is_directory, stat_entry
from toolkit.guard.files.protect import AccessRules
from toolkit.guard.files.resolve import READ_DIRECTORY, os_error
from toolkit.guard.files.write import Fingerprint, WrittenFile, is_unchanged, move, replace_file
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.files.guard import FileGuard

# git looks for these by exact spelling, and a file system that ignores case finds them by any.
_HEAD: Final = "HEAD"
_COMPLETING: Final = (_HEAD, "objects", "refs", "commondir")
# What git reads and writes at the top of a repository. Other names there are not its own: a work tree, for example.
_OWN: Final = frozenset({
    "head", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "remotes", "branches",
    "modules", "worktrees", "info", "logs", "packed-refs", "reftable", "index", "shallow", "gitdir", "description",
    "lfs", "rebase-merge", "rebase-apply", "sequencer",
})  # fmt: skip
# While a name that may complete a repository is written, no other thread writes one.
_completing = threading.RLock()


class Changes:
    """Changes what a ``FileGuard`` may change."""

    def __init__(self, fs: FileGuard) -> None:
        self._fs = fs

    def write_file(
        self, text: str, data: bytes, *, create_only: bool = False, expected: Fingerprint | None = None
    ) -> WrittenFile:
        with self._change(text, follow=True) as place:
            shown = place.shown
            before = place.file_to_replace()
            if create_only and before is not None:
                raise already_exists(shown)
            if expected is not None and before is None:
                raise conflict(shown)
            place.make_missing()
            folder, name = place.folder, place.require_name()

            def compare() -> None:
                if expected is not None and not is_unchanged(folder, name, expected):
                    raise conflict(shown)

            mode = None if before is None else stat.S_IMODE(before.st_mode)
            compare()
            with self._fs._accept_changes() as accept:
                given = replace_file(
                    folder, name, data, mode=mode, new=create_only, check=self._fs._check, last=compare
                )
                accept(absolute(place.real), data)
            return WrittenFile(shown, before is None, len(data), given)

    def make_dir(self, text: str, *, parents: bool = True, exist_ok: bool = True) -> bool:
        with (
            self.find_place(text, follow=True) as place,
            FileErrors(place.shown),
            self._fs._begin().protect_repositories([place]),
        ):
            if place.missing and not parents:
                problem = f"the parent directory of '{place.shown}' does not exist"
                raise ToolFailed("NOT_FOUND", problem, path=place.shown)
            place.make_missing()
            try:
                os.mkdir(place.name or ".", dir_fd=place.folder)
            except FileExistsError:
                if exist_ok and (place.name is None or is_directory(stat_entry(place.folder, place.name))):
                    return False
                raise
            return True

    def remove_file(self, text: str) -> None:
        with self._change(text, follow=False) as place:
            name = place.require_name()
            place.refuse_missing()
            self._fs._begin().check_move(place)
            if place.wants_directory and not is_directory(place.stat()):
                raise os_error(errno.ENOTDIR)
            with self._fs._accept_changes() as accept:
                os.unlink(name, dir_fd=place.folder)
                accept(absolute(place.real), None)

    def remove_dir(self, text: str) -> None:
        with self._change(text, follow=False) as place:
            name = place.require_name()
            place.refuse_missing()
            self._fs._begin().check_move(place)
            os.rmdir(name, dir_fd=place.folder)

    def rename(self, old: str, new: str, *, replace: bool = False) -> None:
        with (
            self.find_place(old, follow=False) as source,
            self.find_place(new, follow=False) as target,
            self._fs._begin().hold([source.real, target.real], self._fs._check),
        ):
            with FileErrors(source.shown):
                self._check_move(source, target)
            with FileErrors(target.shown), self._fs._begin().protect_repositories([source, target]):
                target.refuse_missing()
                _move_place(source, target, replace=replace)

    @contextmanager
    def find_place(self, text: str, *, follow: bool) -> Iterator[Place]:
        """The place of ``text``, if it may be changed. Checked by its path before it is found, and by its real path after."""
        path = self._fs.path(text)
        rules = self._fs._begin()
        rules.check_write(path)
        with FileErrors(path.shown):
            rules.root(path).refuse_removed()
            place = find_place(rules.root(path).number, path, self._fs._resolver, follow=follow)
        with place:
            with FileErrors(path.shown):
                rules.check_write(path, place.real)
                place.top = rules.outermost(place.real)
            yield place

    @contextmanager
    def _change(self, text: str, *, follow: bool) -> Iterator[Place]:
        """``find_place`` with the lock of the name held, repositories protected, and errors of the system translated."""
        with (
            self.find_place(text, follow=follow) as place,
            self._fs._begin().hold([place.real], self._fs._check),
            FileErrors(place.shown),
            self._fs._begin().protect_repositories([place]),
        ):
            yield place

    def _check_move(self, source: Place, target: Place) -> None:
        """Refuse to move what does not exist, is a root, or contains what may not be moved."""
        name = source.require_name()
        target.require_name()
        source.refuse_missing()
        rules = self._fs._begin()
        for place in (source, target):
            rules.check_move(place)
        info = os.stat(name, dir_fd=source.folder, follow_symlinks=False)
        if is_directory(info):
            top = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=source.folder)
            with SandboxDir(top, source.shown, self._fs._check) as folder:
                _refuse_covered(folder, (source, target), rules)
        elif source.wants_directory or target.wants_directory:
            raise os_error(errno.ENOTDIR)


def _refuse_covered(top: SandboxDir, ends: Sequence[Place], rules: AccessRules) -> None:
    """Refuse a directory that contains anything that may not be moved from one end to the other.

    Needs one descriptor per level.
    """
    path = top.path
    levels = [(top, top.entries(), [(rules.forms_of(end.path, end.real), end.real) for end in ends])]
    while levels:
        folder, entries, here = levels[-1]
        entry = next(entries, None)
        if entry is None:
            folder.close()
            levels.pop()
            continue
        name = entry.raw
        if any(rules.covers_entry(forms, name) for forms, _ in here):
            raise SandboxViolation(f"'{path}' may not be moved: it contains something protected or denied")
        if any(rules.asks_about_entry(forms, place, name) for forms, place in here):
            raise SandboxViolation(
                f"'{path}' may not be moved: it contains '{folder.path_of(name)}', which needs approval"
            )
        if entry.kind == "directory":
            below = folder.child(entry)
            levels.append((below, below.entries(), [(forms.below(name), (*place, name)) for forms, place in here]))


def _move_place(source: Place, target: Place, *, replace: bool) -> None:
    """Rename one to the other. Both have been checked against the rules."""
    try:
        move(source.folder, source.require_name(), target.folder, target.require_name(), replace=replace)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        problem = f"'{source.shown}' cannot be moved to another file system"
        raise ToolFailed("IO", problem, path=source.shown) from None


# -- repositories -------------------------------------------------------------------------------------------------------


@contextmanager
def without_repositories(places: Sequence[Place]) -> Iterator[None]:
    """Refuse changes of these places that, all together, complete or change a repository. Make them inside the block.

    A directory is a repository as soon as it has the right names in it, whatever it is called. ``git status`` there, or
    below, obeys its ``config``, which can name a program to run. So the name that would complete a repository is not
    written, whichever comes last, and what git reads in a complete one is not changed.

    Limits: holds among threads of this process. A directory that only another one's ``commondir`` leads to has no
    ``HEAD`` and is not recognized.
    """
    concerned = [(place, list(_own_names(place))) for place in places]
    if not any(own for _, own in concerned):
        yield
        return
    with _completing:
        for place, own in concerned:
            for at in own:
                if _is_repository({*_present(place, at), *_added(places, place.real[:at])}):
                    raise _refusal(place, at)
        yield


def _own_names(place: Place) -> Iterator[int]:
    """Where in the real path, below the outermost root, there are names that git uses."""
    return (at for at in range(place.top, len(place.real)) if not _OWN.isdisjoint(fold(place.real[at])))


def _is_repository(names: set[str]) -> bool:
    return "head" in names and ("commondir" in names or {"objects", "refs"} <= names)


def _present(place: Place, at: int) -> Iterator[str]:
    """Which of the names that make a repository exist in the directory above the name at this position."""
    existing = place.depth_of_folder()
    if at > existing:
        return
    above = "../" * (existing - at)
    for name in _COMPLETING:
        try:
            info = os.stat(above + name, dir_fd=place.folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if name != _HEAD or not stat.S_ISDIR(info.st_mode):
            yield name.lower()


def _added(places: Iterable[Place], folder: Names) -> Iterator[str]:
    """Which names the changes would add to this directory. A directory called ``head`` is none that git looks for."""
    depth, folded = len(folder), fold_all(folder)
    for place in places:
        if len(place.real) > depth and fold_all(place.real[:depth]) == folded:
            is_last = len(place.real) == depth + 1
            yield from (name for name in fold(place.real[depth]) if is_last or name != "head")


def _refusal(place: Place, at: int) -> SandboxViolation:
    repository = display("/".join(place.real[place.top : at]) or ".")
    return SandboxViolation(
        f"'{place.shown}' is protected: '{repository}' is a git repository, or would become one, and git runs programs "
        'that its settings name; use git in a command, or set ToolkitContext(git="write")'
    )


def _start_again_in_child() -> None:
    global _completing
    _completing = threading.RLock()


os.register_at_fork(after_in_child=_start_again_in_child)
