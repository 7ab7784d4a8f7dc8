"""The only way from a tool to a file: ``SandboxFS`` holds directories open and gives what lies below them.

Promise: no text, link or race makes an operation touch anything outside the roots that were opened at
construction, even if such a directory is renamed or its name comes to mean another one. Only regular files are
read or written, and no operation waits for a FIFO or a device. No message holds a host path that was not asked for.

Not stopped: hard links and mounts below a root, a process that changes the workspace while it is being read, and
one that moves a directory out of a root in the middle of an operation that has opened it. A device node below a
root is opened, without waiting, before it is refused.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import errno
import hashlib
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from toolkit.errors import SetupError, ToolFailed
from toolkit.guard.fs.deny_globs import Globs
from toolkit.guard.fs.handles import (
    CHUNK,
    READ_DIRECTORY,
    READ_FILE,
    Check,
    FileInfo,
    Open,
    OpenFile,
    SandboxDir,
    fstat,
    join,
    kind_of,
    regular_file,
)
from toolkit.guard.fs.os_errors import changed, failure, told
from toolkit.guard.fs.path import SandboxPath
from toolkit.guard.fs.place import Names, find, real_names
from toolkit.guard.fs.protect import ALWAYS_PROTECTED, Ground, Root
from toolkit.guard.fs.resolve import HANDLE, ResolverName, open_beneath, os_error, pick
from toolkit.guard.fs.target import (
    Target,
    file_to_replace,
    is_directory,
    last_name,
    move,
    refuse_covered,
    refuse_missing,
)
from toolkit.guard.fs.transaction.apply import transact
from toolkit.guard.fs.transaction.change import Change
from toolkit.guard.fs.transaction.journal import JournalDirectory
from toolkit.guard.fs.transaction.recover import Recovered, recover
from toolkit.guard.fs.write import Fingerprint, Written, holding, is_still, look, put
from toolkit.guard.permission import Mode

Roots: TypeAlias = Sequence[str | os.PathLike[str]]


# Comparing names is slow; a suggestion is not worth more.
_NEAR_CANDIDATES: Final = 1000


class SandboxFS(Open[Ground]):
    """The files below the workspace and some extra roots, which are found once and held open from then on.

    Every method takes a path text relative to the workspace (or absolute and below the name of a root), follows
    relative links that stay inside, refuses the rest with ``SandboxViolation`` and fails with ``ToolFailed``.
    ``mode="read-only"`` holds for all roots, and ``read_roots`` are never written; where roots lie in each other, the
    deepest decides. ``.git`` and what ``protected`` (patterns, as in ``Globs``) covers are read, but never changed.
    ``journal`` is a private directory outside every root, for what ``recover`` needs; it is made when it is first used.
    May be used by several threads. Limit: an absolute path must begin with a root as it was given here.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        resolver: ResolverName = "auto",
        mode: Mode = "workspace-write",
        read_roots: Roots = (),
        write_roots: Roots = (),
        protected: Sequence[str] = (),
        journal: str | None = None,
    ) -> None:
        if mode not in ("workspace-write", "read-only"):
            raise SetupError(f"the mode is 'workspace-write' or 'read-only', not {mode!r}")
        self._resolver = pick(resolver)
        guarded = Globs((*ALWAYS_PROTECTED, *Globs(protected).globs))
        writable = mode == "workspace-write"
        workspace = _root(root, "workspace root", writable=writable)
        extra = [
            *(_root(one, "read root", writable=False) for one in _listed(read_roots, "read_roots")),
            *(_root(one, "write root", writable=writable) for one in _listed(write_roots, "write_roots")),
        ]
        self._name = workspace.name
        # The deepest first: it is the one an absolute path is below.
        self._extra_names = tuple(one.name for one in sorted(extra, key=lambda one: len(one.names), reverse=True))
        if len({self._name, *self._extra_names}) <= len(extra):
            raise SetupError("a root is given twice: each directory is the workspace, a read root or a write root")
        self._journals = None if journal is None else _journals(journal, [workspace, *extra])
        super().__init__(Ground(workspace, extra, guarded), _no_check)

    def bound(self, check: Check) -> SandboxFS:
        """A view on the same root that calls ``check`` first in every operation and every read.

        ``check`` raises to end the call; it takes the place of an earlier one. The view is closed by itself and
        outlives its origin.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def denied(self, globs: Sequence[str]) -> SandboxFS:
        """A view on the same root in which what ``globs`` cover may be neither read nor written, nor seen in listings.

        Adds to the rules of an earlier such view. The patterns are those of ``Globs``; a path is judged as it was
        asked for and as what it leads to.
        """
        view = copy.copy(self)
        view._held = self._begin().denied(globs)
        return view

    def path(self, text: str) -> SandboxPath:
        """The checked form of ``text``; says nothing about whether it exists or leaves the root."""
        return SandboxPath.parse(text, self._name, self._extra_names)

    def hides(self, path: str) -> bool:
        """Whether a deny rule covers this path below the workspace, by its names alone; nothing is opened.

        Takes names as the system has them, undecodable ones too: for paths that come from elsewhere than a listing.
        """
        ground = self._begin()
        return ground.deny is not None and ground.hides(
            tuple(name for name in path.split("/") if name not in ("", "."))
        )

    def open_file(self, text: str) -> OpenFile:
        """Open a regular file for reading; anything else is ``NOT_FILE``."""
        path = self.path(text)
        return regular_file(self._open(path, READ_FILE), path.shown, self._check)

    def open_dir(self, text: str) -> SandboxDir:
        """Open a directory for listing; anything else is ``NOT_DIRECTORY``."""
        return self._open_dir(self.path(text))

    def stat(self, text: str) -> FileInfo:
        """What the path leads to, links followed; needs no permission to read it."""
        path = self.path(text)
        number = self._open(path, HANDLE)
        info = fstat(number, path.shown)
        os.close(number)
        return FileInfo(kind_of(info.st_mode), info.st_size, info.st_mtime_ns)

    def fingerprint(self, text: str) -> Fingerprint:
        """What ``write_file`` compares with the file it replaces. Reads the whole file, for its digest."""
        with self.open_file(text) as file:
            digest = hashlib.sha256()
            while piece := file.read(CHUNK):
                digest.update(piece)
            return dataclasses.replace(file.fingerprint(), sha256=digest.hexdigest())

    def near(self, text: str, limit: int = 3) -> list[str]:
        """Paths resembling a missing ``text``: names like the first missing one, in the last directory that exists.

        Limit: only the first thousand names of that directory are compared.
        """
        self._begin()
        path = self.path(text)
        for depth in reversed(range(len(path.parts))):
            try:
                with self._open_dir(SandboxPath(path.parts[:depth], root=path.root)) as folder:
                    names = [entry.name for entry in itertools.islice(folder.entries(), _NEAR_CANDIDATES)]
            except ToolFailed:
                continue
            folded = {name.casefold(): name for name in names}
            close = difflib.get_close_matches(path.parts[depth].casefold(), folded, n=limit)
            return [join(folder.path, folded[key]) for key in close]
        return []

    @contextmanager
    def lock(self, *texts: str) -> Iterator[None]:
        """Keep other threads from writing these files: for who reads a file to write it again.

        ``write_file`` takes the same lock, and so do ``rename`` and the removals; who has it may take it again.
        Refuses what may not be written. Limits: not among processes; a second ``lock`` inside the first may
        wait for somebody who waits for this one, so name all files at once.
        """
        places: list[Names] = []
        for text in texts:
            with self._target(text, follow=True) as target:
                places.append(target.real)
        with holding(places, self._check):
            yield

    def write_file(
        self, text: str, data: bytes, *, create_only: bool = False, expected: Fingerprint | None = None
    ) -> Written:
        """Give the file this content, making it and the directories above it where they are missing.

        A replaced file keeps its permissions, a new one gets those umask leaves. A link that stays inside is
        followed to its file. ``create_only`` refuses a file that exists (``ALREADY_EXISTS``), ``expected`` one that
        is not what it was (``CONFLICT``). After any failure the old file is intact; directories made for it stay.
        Limit: a change made in the instant between the last comparison and the replacement is lost.
        """
        with self._target(text, follow=True) as target, holding([target.real], self._check), told(target.path.shown):
            place, shown = target.place, target.path.shown
            before = file_to_replace(place, shown)
            if create_only and before is not None:
                raise ToolFailed("ALREADY_EXISTS", f"'{shown}' exists already", path=shown)
            if expected is not None and before is None:
                raise changed(shown)
            place.make_missing()
            folder, name = place.folder, last_name(target)

            def compare() -> None:
                if expected is not None and not is_still(folder, name, expected):
                    raise changed(shown)

            mode = None if before is None else stat.S_IMODE(before.st_mode)
            compare()
            given = put(folder, name, data, mode=mode, new=create_only, check=self._check, last=compare)
            return Written(shown, before is None, len(data), given)

    def make_dir(self, text: str, *, parents: bool = True, exist_ok: bool = True) -> bool:
        """Make a directory, with those above it unless ``parents`` is false; whether there was none before."""
        with self._target(text, follow=True) as target, told(target.path.shown):
            place, shown = target.place, target.path.shown
            if place.missing and not parents:
                raise ToolFailed("NOT_FOUND", f"the directory above '{shown}' does not exist", path=shown)
            place.make_missing()
            try:
                os.mkdir(place.name or ".", dir_fd=place.folder)
            except FileExistsError:
                if exist_ok and (place.name is None or is_directory(look(place.folder, place.name))):
                    return False
                raise
            return True

    def remove_file(self, text: str) -> None:
        """Remove one name that is no directory; of a link, the link itself."""
        with self._target(text, follow=False) as target, holding([target.real], self._check), told(target.path.shown):
            name = last_name(target)
            refuse_missing(target)
            if target.place.wants_directory and not is_directory(look(target.place.folder, name)):
                raise os_error(errno.ENOTDIR)
            os.unlink(name, dir_fd=target.place.folder)

    def remove_dir(self, text: str) -> None:
        """Remove an empty directory that is no root."""
        with self._target(text, follow=False) as target, holding([target.real], self._check), told(target.path.shown):
            name = last_name(target)
            refuse_missing(target)
            self._begin().check_moved(target.path, target.real)
            os.rmdir(name, dir_fd=target.place.folder)

    def rename(self, old: str, new: str, *, replace: bool = False) -> None:
        """Move a name, of a link the link itself; ``replace`` lets it take the place of a file or an empty directory.

        A directory that holds something protected or denied, before or after, stays where it is; all below it is
        looked at for that. Limit: what another process puts into it after that look is moved with it.
        """
        with (
            self._target(old, follow=False) as source,
            self._target(new, follow=False) as target,
            holding([source.real, target.real], self._check),
        ):
            with told(source.path.shown):
                self._check_moved(source, target)
            with told(target.path.shown):
                refuse_missing(target)
                move(source, target, replace=replace)

    def transaction(self, changes: Sequence[Change]) -> None:
        """Make all of these changes or, after any failure, none; a file that is not as expected is a ``CONFLICT``.

        Every path is judged and followed as ``write_file`` and ``remove_file`` do, but no link is removed, and directories
        that were made for what failed are removed. With a journal directory this holds for a process that is killed,
        too, once the next one calls ``recover``; without one, only for errors. Limit: others may see a part of it meanwhile.
        """
        transact(changes, self._target, self._begin(), self._journals, self._check)

    def recover(self) -> tuple[Recovered, ...]:
        """Finish or undo what killed processes left below these roots; to be called before anybody works there.

        Leaves alone what a living process is at work on, and what somebody changed meanwhile; the answer tells of it.
        """
        return () if self._journals is None else tuple(recover(self._journals, self._begin()))

    def _open(self, path: SandboxPath, flags: int) -> int:
        ground = self._begin()
        if path.wants_directory:
            flags |= os.O_DIRECTORY
        try:
            if ground.deny is not None:
                return self._open_judged(ground, path, flags)
            return open_beneath(ground.root(path).number, path.text, flags, self._resolver)
        except OSError as error:
            raise failure(error, path.shown) from None

    def _open_judged(self, ground: Ground, path: SandboxPath, flags: int) -> int:
        """As a whole path is opened, but with a stop before its last name, to judge where that is."""
        ground.check_read(path)
        with find(ground.root(path).number, path, self._resolver, follow=True) as place:
            ground.check_read(path, place.real())
            return place.open(flags)

    def _open_dir(self, path: SandboxPath) -> SandboxDir:
        ground = self._begin()
        number = self._open(path, READ_DIRECTORY)
        folder = SandboxDir(number, path.shown, self._check)
        if ground.deny is not None:
            with told(path.shown):
                folder._sight = ground.sight(path, number)
        return folder

    @contextmanager
    def _target(self, text: str, *, follow: bool) -> Iterator[Target]:
        """The place of ``text``, if it may be changed: judged by its text before and by where it is after it was found."""
        path = self.path(text)
        ground = self._begin()
        ground.check_write(path)
        with told(path.shown):
            place = find(ground.root(path).number, path, self._resolver, follow=follow)
        with place:
            with told(path.shown):
                real = place.real()
                forms = ground.check_write(path, real)
            yield Target(path, place, real, forms)

    def _check_moved(self, source: Target, target: Target) -> None:
        """Refuse to move what is not there, is a root, or holds what may not be moved."""
        name = last_name(source)
        last_name(target)
        refuse_missing(source)
        ground = self._begin()
        for one in (source, target):
            ground.check_moved(one.path, one.real)
        info = os.stat(name, dir_fd=source.place.folder, follow_symlinks=False)
        if is_directory(info):
            top = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=source.place.folder)
            with SandboxDir(top, source.path.shown, self._check) as folder:
                refuse_covered(folder, (source.forms, target.forms), ground)
        elif source.place.wants_directory or target.place.wants_directory:
            raise os_error(errno.ENOTDIR)


def _no_check() -> None:
    """What an unbound ``SandboxFS`` asks before each operation."""


def _root(given: str | os.PathLike[str], what: str, *, writable: bool) -> Root:
    try:
        number = os.open(given, HANDLE | os.O_DIRECTORY)
    except OSError as error:
        name = os.fspath(given)
        raise SetupError(f"{what} {name!r} cannot be opened as a directory: {error.strerror}") from error
    return Root(number, os.path.abspath(given), writable=writable)


def _journals(path: str, roots: Sequence[Root]) -> JournalDirectory:
    """Out of reach of every tool, or a workspace could write the journal that is believed at the next start."""
    names = tuple(name for name in os.path.realpath(path).split("/") if name)
    for root in roots:
        above = real_names(root.number)
        if names[: len(above)] == above:
            raise SetupError(f"the journal directory {path!r} lies inside the root {root.name!r}; give one outside")
    return JournalDirectory("/" + "/".join(names))


def _listed(roots: Roots, what: str) -> Roots:
    if isinstance(roots, str | bytes | os.PathLike):
        raise SetupError(f"{what} are a list of directories, even if there is one")
    return roots
