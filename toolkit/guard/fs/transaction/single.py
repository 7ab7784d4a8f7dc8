"""Changes of one name at a time: written, made, removed, moved. Several at once are a transaction.

Imported at the first change: most calls only read. What each method promises is said where callers see it, in ``SandboxFS``.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolkit.errors import ToolFailed
from toolkit.guard.bare_repository import ChangedName
from toolkit.guard.files.handles import SandboxDir
from toolkit.guard.files.locks import hold_locks
from toolkit.guard.files.resolve import READ_DIRECTORY, os_error
from toolkit.guard.files.target import (
    Target,
    file_to_replace,
    is_directory,
    last_name,
    move_target,
    refuse_covered,
    refuse_missing,
)
from toolkit.guard.files.write import Fingerprint, WrittenFile, is_unchanged, replace_file, stat_entry
from toolkit.guard.fs.os_errors import FileErrors, already_exists, conflict
from toolkit.guard.fs.place import Names, find_place
from toolkit.guard.fs.transaction.accept import absolute

if TYPE_CHECKING:
    from toolkit.guard.files.sandbox_fs import SandboxFS


class Changes:
    """Changes what a ``SandboxFS`` may change."""

    def __init__(self, fs: SandboxFS) -> None:
        self._fs = fs

    @contextmanager
    def lock(self, *texts: str) -> Iterator[None]:
        places: list[Names] = []
        for text in texts:
            with (
                self.find_target(text, follow=True) as target,
                FileErrors(target.path.shown),
                self._fs._begin().protect_repositories([target.changed]),
            ):
                places.append(target.real)
        with hold_locks(places, self._fs._check, self._fs._begin().hold_elsewhere):
            yield

    def write_file(
        self, text: str, data: bytes, *, create_only: bool = False, expected: Fingerprint | None = None
    ) -> WrittenFile:
        with self._change_target(text, follow=True) as target:
            place, shown = target.place, target.path.shown
            before = file_to_replace(place, shown)
            if create_only and before is not None:
                raise already_exists(shown)
            if expected is not None and before is None:
                raise conflict(shown)
            place.make_missing()
            folder, name = place.folder, last_name(target)

            def compare() -> None:
                if expected is not None and not is_unchanged(folder, name, expected):
                    raise conflict(shown)

            mode = None if before is None else stat.S_IMODE(before.st_mode)
            compare()
            with self._fs._accept_changes() as accept:
                given = replace_file(
                    folder, name, data, mode=mode, new=create_only, check=self._fs._check, last=compare
                )
                accept(absolute(target.real), data)
            return WrittenFile(shown, before is None, len(data), given)

    def make_dir(self, text: str, *, parents: bool = True, exist_ok: bool = True) -> bool:
        with (
            self.find_target(text, follow=True) as target,
            FileErrors(target.path.shown),
            self._fs._begin().protect_repositories([target.changed]),
        ):
            place, shown = target.place, target.path.shown
            if place.missing and not parents:
                raise ToolFailed("NOT_FOUND", f"the parent directory of '{shown}' does not exist", path=shown)
            place.make_missing()
            try:
                os.mkdir(place.name or ".", dir_fd=place.folder)
            except FileExistsError:
                if exist_ok and (place.name is None or is_directory(stat_entry(place.folder, place.name))):
                    return False
                raise
            return True

    def remove_file(self, text: str) -> None:
        with self._change_target(text, follow=False) as target:
            name = last_name(target)
            refuse_missing(target)
            self._fs._begin().check_move(target.path, target.real)
            if target.place.wants_directory and not is_directory(stat_entry(target.place.folder, name)):
                raise os_error(errno.ENOTDIR)
            with self._fs._accept_changes() as accept:
                os.unlink(name, dir_fd=target.place.folder)
                accept(absolute(target.real), None)

    def remove_dir(self, text: str) -> None:
        with self._change_target(text, follow=False) as target:
            name = last_name(target)
            refuse_missing(target)
            self._fs._begin().check_move(target.path, target.real)
            os.rmdir(name, dir_fd=target.place.folder)

    def rename(self, old: str, new: str, *, replace: bool = False) -> None:
        with (
            self.find_target(old, follow=False) as source,
            self.find_target(new, follow=False) as target,
            hold_locks([source.real, target.real], self._fs._check, self._fs._begin().hold_elsewhere),
        ):
            with FileErrors(source.path.shown):
                self._check_move(source, target)
            with (
                FileErrors(target.path.shown),
                self._fs._begin().protect_repositories([source.changed, target.changed]),
            ):
                refuse_missing(target)
                move_target(source, target, replace=replace)

    @contextmanager
    def find_target(self, text: str, *, follow: bool) -> Iterator[Target]:
        """The place of ``text``, if it may be changed. Checked by its path before it is found, and by its real path after."""
        path = self._fs.path(text)
        rules = self._fs._begin()
        rules.check_write(path)
        with FileErrors(path.shown):
            rules.root(path).refuse_removed()
            place = find_place(rules.root(path).number, path, self._fs._resolver, follow=follow)
        with place:
            with FileErrors(path.shown):
                real = place.real()
                forms = rules.check_write(path, real)
                changed = ChangedName.at(place, real, rules.outermost(real), path.shown)
            yield Target(path, place, real, forms, changed)

    @contextmanager
    def _change_target(self, text: str, *, follow: bool) -> Iterator[Target]:
        """``find_target`` with the lock of the name held, repositories protected, and errors of the system translated."""
        with (
            self.find_target(text, follow=follow) as target,
            hold_locks([target.real], self._fs._check, self._fs._begin().hold_elsewhere),
            FileErrors(target.path.shown),
            self._fs._begin().protect_repositories([target.changed]),
        ):
            yield target

    def _check_move(self, source: Target, target: Target) -> None:
        """Refuse to move what does not exist, is a root, or contains what may not be moved."""
        name = last_name(source)
        last_name(target)
        refuse_missing(source)
        rules = self._fs._begin()
        for one in (source, target):
            rules.check_move(one.path, one.real)
        info = os.stat(name, dir_fd=source.place.folder, follow_symlinks=False)
        if is_directory(info):
            top = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=source.place.folder)
            with SandboxDir(top, source.path.shown, self._fs._check) as folder:
                refuse_covered(folder, (source, target), rules)
        elif source.place.wants_directory or target.place.wants_directory:
            raise os_error(errno.ENOTDIR)
