"""Finds what a review compares: repositories and named files, anywhere below the roots that commands may write.

Promise: every entry named ``.git`` of any kind, every directory that git could take for a repository, and every entry
that a pattern covers is found, without following a link. A directory is read again when its change time differs, which a
command cannot set, or when it was so recent at the last reading that a later change may carry the same time (git's rule
for files that are "racily clean"). So a scan costs one ``stat`` for each directory.

Limits: patterns are not applied to object, ref and log directories inside a ``.git``, where names are those of branches.
Directories that cannot be read, and how many were more than ``MAX_FOLDERS``, are part of the result.
"""

from __future__ import annotations

import collections
import os
import stat
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from toolkit.guard.files.consent import Forms, Globs, fold_all
from toolkit.guard.files.resolve import HANDLE

MAX_FOLDERS: Final = 200_000

Identity: TypeAlias = tuple[int, int]

_READ: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RACY_NS: Final = 20_000_000  # more than the coarsest clock that file systems take times from
_BULK: Final = frozenset(["objects", "refs", "logs", "lfs"])
# Directories of a git directory in which git writes files by fixed names, following links.
_WRITTEN: Final = frozenset(["info", "logs", "refs", "rebase-apply", "rebase-merge", "sequencer"])


class EntryPlace(NamedTuple):
    """An entry: the number of its root, and its path below that; empty for the root itself."""

    root: int
    path: str

    def child(self, name: str) -> EntryPlace:
        return EntryPlace(self.root, f"{self.path}/{name}" if self.path else name)

    @property
    def parent(self) -> EntryPlace:
        return EntryPlace(self.root, self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class Scan:
    """What was found. ``git_folders``: by place, with device and inode number. ``pointers``: entries named ``.git``
    that are not directories. ``links``: those in git directories, where git would write through them. ``kept``: entries
    that a pattern covers; what is below one is not listed. ``unreadable``: directories that could not be read;
    ``left_out``: how many were too many."""

    git_folders: dict[EntryPlace, Identity] = field(default_factory=dict)
    pointers: list[EntryPlace] = field(default_factory=list)
    links: list[EntryPlace] = field(default_factory=list)
    kept: list[EntryPlace] = field(default_factory=list)
    unreadable: list[EntryPlace] = field(default_factory=list)
    left_out: int = 0


class _Around(NamedTuple):
    """Where a directory is: in one that a pattern covers or that has names of branches; in one that git writes in."""

    is_covered: bool = False
    is_written: bool = False


class _Folder(NamedTuple):
    """What one directory contained when it was read."""

    around: _Around
    identity: Identity
    changed: int
    settled: bool
    folders: tuple[str, ...]
    is_git: bool
    pointers: tuple[str, ...]
    links: tuple[str, ...]
    kept: tuple[str, ...]

    def around_child(self, path: str, name: str) -> _Around:
        """What is around the directory ``name`` in this one, which is at ``path``."""
        low = name.lower()
        bulk = self.is_git and low in _BULK and "/.git/" in f"/{path.lower()}/"
        return _Around(
            self.around.is_covered or bulk or name in self.kept,
            self.around.is_written or (self.is_git and low in _WRITTEN),
        )


class Seen:
    """The directories that one scan found."""

    def __init__(self, known: Sequence[dict[str, _Folder]] = ()) -> None:
        self._known = tuple(known)  # a scan makes new ones

    def contains(self, place: EntryPlace, identity: Identity) -> bool:
        """Whether it found this directory in this place."""
        folder = self._known[place.root].get(place.path)
        return folder is not None and folder.identity == identity

    def had_folder(self, place: EntryPlace) -> bool:
        """Whether there was a directory in this place, this one or another."""
        return place.path in self._known[place.root]

    def without(self, later: Seen) -> list[EntryPlace]:
        """The directories that ``later`` has not, in no particular order."""
        pairs = enumerate(zip(self._known, later._known, strict=True))
        return [EntryPlace(number, path) for number, (ours, theirs) in pairs for path in ours.keys() - theirs.keys()]


class ScanRoot:
    """A directory that commands may write, held open: it stays the same one, whatever its name leads to."""

    def __init__(self, path: str) -> None:
        self.path: Final = path
        self.fd: Final = os.open(path, HANDLE | os.O_DIRECTORY | os.O_NOFOLLOW)

    def real_path(self) -> str:
        """Where it is now."""
        return os.readlink(f"/proc/self/fd/{self.fd}")

    def open_folder(self, path: str) -> int:
        """A descriptor of a directory below it; ``OSError`` if there is a link on the way."""
        fd = os.open(path or ".", _READ, dir_fd=self.fd)
        if os.readlink(f"/proc/self/fd/{fd}") != (f"{self.real_path()}/{path}" if path else self.real_path()):
            os.close(fd)
            raise NotADirectoryError(f"a part of {path!r} is a link")
        return fd

    def make_readable(self, path: str) -> None:
        """Let the owner of a directory below it read it; ``OSError`` if there is a link on the way."""
        fd = os.open(path, HANDLE | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.fd)
        try:
            if os.readlink(f"/proc/self/fd/{fd}") != f"{self.real_path()}/{path}":
                raise NotADirectoryError(f"a part of {path!r} is a link")
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRWXU)
        finally:
            os.close(fd)

    def close(self) -> None:
        os.close(self.fd)


class Scanner:
    """Scans the same roots again and again. Not for several threads at once.

    ``keep`` are the patterns of kept entries, ``skip`` directories that no command can write, by absolute path.
    """

    def __init__(self, roots: Sequence[ScanRoot], keep: Globs, skip: Collection[str]) -> None:
        self._roots = roots
        self._keep = keep if keep.globs else None
        # By identity: a directory around one of them could be moved, and another be made in its place.
        self._skip = frozenset((info.st_dev, info.st_ino) for info in map(os.stat, filter(os.path.isdir, skip)))
        self._known: list[dict[str, _Folder]] = [{} for _ in roots]

    def scan(self) -> Scan:
        """Everything that is there now."""
        found = Scan()
        for number in range(len(self._roots)):
            self._known[number] = self._scan_root(number, found)
        return found

    def seen(self) -> Seen:
        """The directories that the last scan found."""
        return Seen(self._known)

    def kept_around(self, place: EntryPlace) -> EntryPlace | None:
        """The outermost entry that a pattern covers: the place itself, or a directory around it."""
        names = place.path.split("/")
        for count in range(len(names)):
            folder = "/".join(names[:count])
            if self._keep is not None and self._covered(self._roots[place.root], folder, [names[count]]):
                return EntryPlace(place.root, "/".join(names[: count + 1]))
        return None

    def _scan_root(self, number: int, found: Scan) -> dict[str, _Folder]:
        root, known = self._roots[number], self._known[number]
        fresh: dict[str, _Folder] = {}
        pending = collections.deque([("", _Around())])
        while pending:
            path, around = pending.popleft()  # nearest first: a great many directories do not hide those at the top
            if len(fresh) >= MAX_FOLDERS:
                found.left_out += 1
                continue
            folder = known.get(path)
            try:
                info = os.stat(path or ".", dir_fd=root.fd, follow_symlinks=False)
                if (info.st_dev, info.st_ino) in self._skip:
                    continue
                if (
                    folder is None
                    or not folder.settled
                    or folder.changed != info.st_ctime_ns
                    or folder.identity != (info.st_dev, info.st_ino)
                    or folder.around != around
                ):
                    folder = self._read(root, path, around)
            except FileNotFoundError:
                continue
            except OSError:
                found.unreadable.append(EntryPlace(number, path))
                continue
            fresh[path] = folder
            prefix = f"{path}/" if path else ""
            plain = not folder.is_git and not folder.kept
            for name in folder.folders:
                pending.append((prefix + name, around if plain else folder.around_child(path, name)))
            if folder.is_git:
                found.git_folders[EntryPlace(number, path)] = folder.identity
            if folder.pointers:
                found.pointers += [EntryPlace(number, prefix + name) for name in folder.pointers]
            if folder.links:
                found.links += [EntryPlace(number, prefix + name) for name in folder.links]
            if folder.kept:
                found.kept += [EntryPlace(number, prefix + name) for name in folder.kept]
        return fresh

    def _read(self, root: ScanRoot, path: str, around: _Around) -> _Folder:
        now = time.time_ns()
        fd = root.open_folder(path)
        try:
            info = os.fstat(fd)
            folders: list[str] = []
            others: list[str] = []
            links: list[str] = []
            with os.scandir(fd) as entries:
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
                    if entry.is_symlink():
                        links.append(entry.name)
        finally:
            os.close(fd)
        lower = {name.lower() for name in (*folders, *others)}
        name = path.rpartition("/")[2].lower()
        is_git = name == ".git" or ("head" in lower and ({"objects", "refs"} <= lower or "commondir" in lower))
        return _Folder(
            around,
            (info.st_dev, info.st_ino),
            info.st_ctime_ns,
            info.st_ctime_ns < now - _RACY_NS,
            tuple(folders),
            is_git,
            tuple(one for one in others if one.lower() == ".git"),
            tuple(links) if is_git or around.is_written else (),
            () if around.is_covered or self._keep is None else self._covered(root, path, [*folders, *others]),
        )

    def is_kept_by_path(self, place: EntryPlace) -> bool:
        """Whether a pattern with a slash covers it, not only one for names anywhere."""
        return self._keep is not None and self._keep.cover_by_path(_forms(self._roots[place.root], place.path))

    def _covered(self, root: ScanRoot, path: str, names: Sequence[str]) -> tuple[str, ...]:
        assert self._keep is not None
        here = _forms(root, path)
        return tuple(name for name in names if self._keep.cover_entry(here, name))


def _forms(root: ScanRoot, path: str) -> Forms:
    relative = fold_all(path.split("/")) if path else ()
    return Forms([relative], [fold_all(root.path.strip("/").split("/")) + relative])
