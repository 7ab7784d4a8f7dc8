"""``FileGuard``, the only way to a file for a tool: it holds the roots open and works below them.

Promise: no path, link or race makes an operation touch anything outside the roots that were opened at construction, even
if a root is renamed or its name later means another directory. Only regular files are read or written, and no operation
waits for a FIFO or a device. No message contains a host path that the caller did not give.

Not stopped: hard links and mounts below a root, a process that changes the workspace while it is being read, and a process
that moves a directory out of a root during an operation that has opened it. A device node below a root is opened, without
waiting, before it is refused.

How it is built: ``path.py`` has the path as a caller wrote it and every error text. ``resolve.py`` opens a path beneath a
root in one step, and ``place.py`` the directory of a name that is about to be used. ``protect.py`` and ``consent.py`` say
what may be touched there. ``handles.py`` reads, and ``changes.py`` changes one name with the steps in ``write.py``. Locks,
transactions and what is convenient are built on top of this: ``toolkit.files``.
"""

from __future__ import annotations

import copy
import errno
import itertools
import os
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolFailed
from toolkit.guard.files.consent import Consent, Forms, Globs, LocatedPath, fold_all, name_place
from toolkit.guard.files.handles import (
    READ_FILE,
    Check,
    FileInfo,
    Handle,
    OpenFile,
    SandboxDir,
    as_regular_file,
    fstat,
    join_path,
    kind_of,
)
from toolkit.guard.files.path import AcceptChanges, FileErrors, SandboxPath, ignore_changes, split_names, to_failure
from toolkit.guard.files.place import find_place, real_names
from toolkit.guard.files.protect import ALWAYS_PROTECTED, AccessRules, HoldPlaces, ReadOnlyPlaces, Root, hold_nothing
from toolkit.guard.files.resolve import HANDLE, READ_DIRECTORY, ResolverName, open_beneath, pick

if TYPE_CHECKING:
    from toolkit.guard.files.changes import Changes
    from toolkit.guard.permission import GitMode, Mode

RootPaths: TypeAlias = Sequence[str | os.PathLike[str] | Root]
# Comparing names is slow, and a suggestion is not worth more.
_MAX_COMPARED_NAMES: Final = 1000
_MAX_COMPARED_DEPTH: Final = 64


class FileGuard(Handle[AccessRules]):
    """The files below the workspace and the extra roots, which are opened once and held open. Thread-safe.

    Paths and the settings are those of ``SandboxFS``, which is built on this. ``hold`` is entered with the real paths of
    what is about to be changed, to keep other writers out.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Root,
        *,
        resolver: ResolverName = "auto",
        mode: Mode = "workspace-write",
        read_roots: RootPaths = (),
        write_roots: RootPaths = (),
        protected: Sequence[str] = (),
        read_only: Sequence[str] = (),
        git: GitMode = "commit",
        accept_changes: AcceptChanges = ignore_changes,
        hold: HoldPlaces = hold_nothing,
    ) -> None:
        if mode not in ("workspace-write", "read-only"):
            raise SetupError(f"mode must be 'workspace-write' or 'read-only', not {mode!r}")
        self._resolver = pick(resolver)
        self._accept_changes = accept_changes
        protected_globs = Globs((*ALWAYS_PROTECTED, *Globs(protected).globs))
        writable = mode == "workspace-write"
        workspace = Root.open(root, "workspace", writable=writable)
        extra = [
            *(Root.open(one, "read root", writable=False) for one in _require_list(read_roots, "read_roots")),
            *(Root.open(one, "write root", writable=writable) for one in _require_list(write_roots, "write_roots")),
        ]
        self._name = workspace.name
        # The deepest first, because an absolute path belongs to the deepest root around it.
        self._extra_names = tuple(one.name for one in sorted(extra, key=lambda one: len(one.names), reverse=True))
        if len({self._name, *self._extra_names}) <= len(extra):
            raise SetupError("a root is duplicated: each directory is the workspace, a read root or a write root")
        places = ReadOnlyPlaces(read_only) if read_only else None
        super().__init__(AccessRules(workspace, extra, protected_globs, places, git, hold), _no_check)

    def __repr__(self) -> str:
        held = self._held
        state = "closed" if held is None else "" if held.may_write and held.workspace.writable else "for reading"
        return f"<{type(self).__name__} {self._name!r}{f': {state}' if state else ''}>"

    def with_check(self, check: Check) -> Self:
        """A view of the same roots that calls ``check`` at the start of every operation and every read.

        ``check`` raises to end the call; it replaces an earlier one. The view is closed separately and stays open when
        the original is closed.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def with_deny(self, globs: Sequence[str]) -> Self:
        """A view of the same roots in which what ``globs`` cover can be neither read nor written nor listed.

        Adds to the rules of the view it is made from. The patterns are those of ``Globs``; they apply both to the path as
        it was requested and to its real path.
        """
        view = copy.copy(self)
        view._held = self._begin().with_deny(globs)
        return view

    def with_consent(self, consent: Consent | None) -> Self:
        """A view of the same roots for a call that may touch only this; None removes that limit, but no deny rule."""
        view = copy.copy(self)
        view._held = None if self._held is None else self._held.with_consent(consent)
        return view

    def for_reading(self) -> Self:
        """A view of the same roots in which nothing can be changed: the files of a tool without the permission ``write``."""
        view = copy.copy(self)
        view._held = self._begin().for_reading()
        return view

    def path(self, text: str) -> SandboxPath:
        """The checked form of ``text``. It may still not exist, or lead out of the root."""
        return SandboxPath.parse(text, self._name, self._extra_names)

    def hides(self, path: str) -> bool:
        """Whether a listing would leave out this path below the workspace, by its names alone. Opens nothing.

        For paths that do not come from a listing. Takes names as the system has them, undecodable ones too.
        """
        rules = self._begin()
        return rules.checks_reads and rules.hides(tuple(split_names(path)))

    def locate(self, text: str, *, is_written: bool = False) -> LocatedPath:
        """Where a path really leads, for rules that are judged before a call. Does not fail, whatever the path is."""
        try:
            return self._begin().locate(self.path(text), text, self._resolver, is_written=is_written)
        except (InvalidArguments, SandboxViolation):
            return LocatedPath(text, Forms([fold_all(split_names(text))], []), is_written)

    def name_real(self, text: str) -> str | None:
        """The real path of what a path leads to, for records; None if it leads nowhere or out of the roots. Does not fail.

        Relative to the workspace, absolute in another root. Directories have a slash at their end.
        """
        try:
            path, rules = self.path(text), self._begin()
            number = open_beneath(rules.root(path).number, SandboxPath(path.parts).text, HANDLE, self._resolver)
        except FileNotFoundError:
            return self.locate(text).name
        except (OSError, InvalidArguments, SandboxViolation):
            return None
        try:
            real, is_folder = real_names(number), stat.S_ISDIR(os.fstat(number).st_mode)
        finally:
            os.close(number)
        top = rules.workspace.real_names
        if real[: len(top)] != top:  # another root, or the workspace has moved
            top = real_names(rules.workspace.number)
        below = real[: len(top)] == top
        return name_place(real[len(top) :] if below else real, below, is_folder)

    def open_file(self, text: str) -> OpenFile:
        """Open a regular file for reading; anything else is ``NOT_FILE``."""
        path = self.path(text)
        return as_regular_file(self._open(path, READ_FILE), path.shown, self._check)

    def open_dir(self, text: str) -> SandboxDir:
        """Open a directory for listing; anything else is ``NOT_DIRECTORY``."""
        return self._open_dir(self.path(text))

    def stat(self, text: str) -> FileInfo:
        """What the path leads to, following links. Needs no read permission on it."""
        path = self.path(text)
        number = self._open(path, HANDLE)
        info = fstat(number, path.shown)
        os.close(number)
        return FileInfo(kind_of(info.st_mode), info.st_size, info.st_mtime_ns)

    def similar_paths(self, text: str, limit: int = 3) -> list[str]:
        """Paths similar to a missing ``text``: names like the first missing one, in the last directory that exists.

        Limit: only the first thousand names of that directory are compared, and nothing is similar to a path of more than
        64 names: each directory above it may be missing, and each is looked for by all of its names.
        """
        rules = self._begin()
        path = self.path(text)
        if len(path.parts) > _MAX_COMPARED_DEPTH:
            return []
        for depth in reversed(range(len(path.parts))):
            try:
                with self._open_dir(SandboxPath(path.parts[:depth], root=path.root)) as folder:
                    names = [entry.name for entry in itertools.islice(folder.entries(), _MAX_COMPARED_NAMES)]
            except ToolFailed:
                continue
            except SandboxViolation:
                if rules.checks_reads:
                    return []  # this call may not list it
                raise
            import difflib

            folded = {name.casefold(): name for name in names}
            close = difflib.get_close_matches(path.parts[depth].casefold(), folded, n=limit)
            return [join_path(folder.path, folded[key]) for key in close]
        return []

    @property
    def _changes(self) -> Changes:
        """How what is built on this changes files, by the same rules."""
        from toolkit.guard.files.changes import Changes

        return Changes(self)

    def _open(self, path: SandboxPath, flags: int) -> int:
        rules = self._begin()
        if path.wants_directory:
            flags |= os.O_DIRECTORY
        try:
            if rules.checks_reads:
                return self._open_checked(rules, path, flags)
            return open_beneath(rules.root(path).number, path.text, flags, self._resolver)
        except OSError as error:
            if error.errno == errno.ENOENT:
                rules.root(path).refuse_removed()
            raise to_failure(error, path.shown) from None

    def _open_checked(self, rules: AccessRules, path: SandboxPath, flags: int) -> int:
        """Open a path in two steps: the rules are checked on its real path before the last name is opened."""
        rules.check_denied(path)
        with find_place(rules.root(path).number, path, self._resolver, follow=True) as place:
            rules.check_read(path, place.real)
            return place.open(flags)

    def _open_dir(self, path: SandboxPath) -> SandboxDir:
        rules = self._begin()
        if not path.parts:
            rules.root(path).refuse_removed()
        number = self._open(path, READ_DIRECTORY)
        folder = SandboxDir(number, path.shown, self._check)
        if rules.checks_reads:
            with FileErrors(path.shown):
                folder._filter = rules.listing_filter(path, number)
        return folder


def _no_check() -> None:
    """The check of a ``FileGuard`` without one."""


def _require_list(roots: RootPaths, what: str) -> RootPaths:
    if isinstance(roots, str | bytes | os.PathLike):
        raise SetupError(f"{what} must be a list of directories: write [{os.fspath(roots)!r}]")
    return roots
