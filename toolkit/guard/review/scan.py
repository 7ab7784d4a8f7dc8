"""Finds what a review compares: repositories and named files, anywhere below the roots that commands may write.

Promise: every entry named ``.git`` of any kind, every directory that git could take for a repository, and every entry
that a pattern covers is found, without following a link. A directory is read again when its change time differs, which a
command cannot set, or when it was so recent at the last reading that a later change may carry the same time (git's rule
for files that are "racily clean"). So a scan costs one ``stat`` for each directory.

Limits: unless asked for, patterns are not applied to object, ref and log directories inside a ``.git``, where names are
those of branches.
Directories that cannot be read, and how many were more than ``MAX_FOLDERS``, are part of the result.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from toolkit.guard.files.consent import Forms, Globs, fold_all
from toolkit.guard.files.handles import Check
from toolkit.guard.files.protect import Root
from toolkit.guard.files.resolve import HANDLE
from toolkit.guard.process.command import remove_tree
from toolkit.guard.process.program import is_below

MAX_FOLDERS: Final = 200_000
_CHECKED: Final = 500

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

    def around_child(self, path: str, name: str, *, in_repositories: bool) -> _Around:
        """What is around the directory ``name`` in this one, which is at ``path``."""
        low = name.lower()
        bulk = not in_repositories and self.is_git and low in _BULK and "/.git/" in f"/{path.lower()}/"
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

    def __init__(self, root: Root) -> None:
        self.path: Final = root.real
        self.names: Final = tuple(dict.fromkeys([root.real, root.name]))
        """Its real path, and the one it was given by."""
        self.fd: Final = os.dup(root.number)

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


def _do_nothing() -> None:
    """The check of a scan that may not be ended."""


class Scanner:
    """Scans the same roots again and again. Not for several threads at once.

    ``keep`` are the patterns of kept entries, ``skip`` directories that no command can write, by absolute path.
    ``in_repositories``: whether the patterns are also applied to the object, ref and log directories inside a ``.git``.
    """

    def __init__(
        self, roots: Sequence[ScanRoot], keep: Globs, skip: Collection[str], *, in_repositories: bool = False
    ) -> None:
        self._roots = roots
        self._in_repositories = in_repositories
        self._keep = keep if keep.globs else None
        # By identity: a directory around one of them could be moved, and another be made in its place.
        self._skip = frozenset((info.st_dev, info.st_ino) for info in map(os.stat, filter(os.path.isdir, skip)))
        self._known: list[dict[str, _Folder]] = [{} for _ in roots]

    def scan(self, check: Check = _do_nothing) -> Scan:
        """Everything that is there now. ``check`` is called again and again, and raises to end the scan."""
        found = Scan()
        for number in range(len(self._roots)):
            self._known[number] = self._scan_root(number, found, check)
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

    def _scan_root(self, number: int, found: Scan, check: Check) -> dict[str, _Folder]:
        root, known = self._roots[number], self._known[number]
        fresh: dict[str, _Folder] = {}
        pending = collections.deque([("", _Around())])
        while pending:
            path, around = pending.popleft()  # nearest first: a great many directories do not hide those at the top
            if len(fresh) >= MAX_FOLDERS:
                found.left_out += 1
                continue
            if len(fresh) % _CHECKED == 0:
                check()
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
                inner = around if plain else folder.around_child(path, name, in_repositories=self._in_repositories)
                pending.append((prefix + name, inner))
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
        return self._keep is not None and self._keep.cover_by_path(forms_of(self._roots[place.root], place.path))

    def _covered(self, root: ScanRoot, path: str, names: Sequence[str]) -> tuple[str, ...]:
        assert self._keep is not None
        here = forms_of(root, path)
        return tuple(name for name in names if self._keep.cover_entry(here, name))


def forms_of(root: ScanRoot, path: str) -> Forms:
    """The names of what is at ``path`` below a root, as patterns compare them."""
    relative = fold_all(path.split("/")) if path else ()
    return Forms([relative], [fold_all(name.strip("/").split("/")) + relative for name in root.names])


# -- entries -----------------------------------------------------------------------------------------------------------

# A file, link or directory as it was: reading it into memory, comparing it, writing it again, taking one away.
#
# Promise: nothing here follows a link when it writes or removes. A link is remembered with what it leads to where commands
# may write, so that a change behind it is a difference as well; what is elsewhere is not even read, because restoring it
# would bring it into the workspace. What is too large to remember is known by its size, inode and times: a change is
# seen, but cannot be undone. Limit: owners and times are not remembered; what root restores belongs to the owner of the
# directory.

MAX_FILE: Final = 1 << 20
MAX_FILES: Final = 2_000
MAX_BYTES: Final = 32 << 20
MAX_DEPTH: Final = 32

Kind: TypeAlias = Literal["file", "link", "directory", "other"]
_T = TypeVar("_T")

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Node:
    """One entry. ``data`` is the content of a file or the target of a link; ``target`` is what a link leads to, if a
    command could have changed that.

    ``whole`` is False if it was too large to remember; ``facts`` identify a file then. ``names``: how many a file has; more
    than one are hard links.
    """

    kind: Kind
    mode: int = 0
    data: bytes = b""
    whole: bool = True
    children: Mapping[str, Node] = field(default_factory=dict)
    target: Node | None = None
    names: int = field(default=1, compare=False)
    facts: tuple[int, ...] = field(default=(), compare=False)

    def stayed(self, now: Node | None) -> bool:
        """Whether it is still the same ``now``. What was too large to remember is compared by size and times.

        A file that has one more name is not: whoever writes to that name later, changes it.
        """
        if now is None or (self.kind, self.mode) != (now.kind, now.mode) or now.names > self.names:
            return False
        if self.children.keys() != now.children.keys():
            return False
        same = self.data == now.data if self.whole and now.whole else self.facts == now.facts
        targets = now.target is None if self.target is None else self.target.stayed(now.target)
        return same and targets and all(child.stayed(now.children[name]) for name, child in self.children.items())

    @property
    def content(self) -> Node:
        """Itself, or what the link leads to."""
        return self.target if self.target is not None else self

    def is_whole(self) -> bool:
        """Whether all of it was remembered, so that it can be written again."""
        return self.whole and self.kind != "other" and all(child.is_whole() for child in self.children.values())

    def is_reached_elsewhere(self) -> bool:
        """Whether its content can be changed in another place, which a mount of it does not hold: there is a link in it,
        or a file with another name."""
        here = self.kind == "link" or self.names > 1
        return here or any(child.is_reached_elsewhere() for child in self.children.values())


def is_unchanged(before: Node | None, now: Node | None) -> bool:
    """Whether an entry, or its absence, is what it was."""
    return before is now or (before is not None and before.stayed(now))


class NodeReader:
    """Reads entries until its budget is spent; further files are only identified. Names in directories that end in
    ``ignored_ending`` do not count. Links are followed to what is below a path in ``within``, and not anywhere else."""

    def __init__(self, files: int = MAX_FILES, *, ignored_ending: str = "", within: Collection[str] = ()) -> None:
        self._files = files
        self._bytes = MAX_BYTES
        self._ignored_ending = ignored_ending
        self._within = within

    def read(self, folder: int, name: str, *, depth: int = 0, follow: bool = True) -> Node | None:
        """The entry ``name`` in the directory with this descriptor; None if there is none."""
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                target = self._read_target(folder, name, depth) if follow else None
                return Node("link", 0, os.fsencode(os.readlink(name, dir_fd=folder)), target=target)
            if stat.S_ISDIR(info.st_mode) and depth < MAX_DEPTH:
                return Node("directory", mode, children=self._read_folder(folder, name, depth, _FOLDER))
            if stat.S_ISREG(info.st_mode):
                return self._read_file(folder, name, info, _FILE | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError:
            return Node("other", data=b"unreadable")
        return Node("other", mode, b"%d" % info.st_mode)

    def _read_folder(self, folder: int, name: str, depth: int, flags: int) -> dict[str, Node]:
        fd = os.open(name, flags, dir_fd=folder)
        try:
            names = [one for one in os.listdir(fd) if not (self._ignored_ending and one.endswith(self._ignored_ending))]
            nodes = {child: self.read(fd, child, depth=depth + 1, follow=flags == _FOLDER) for child in names}
        finally:
            os.close(fd)
        return {child: node for child, node in sorted(nodes.items()) if node is not None}

    def _read_target(self, folder: int, name: str, depth: int) -> Node | None:
        """What a link leads to, if it is a file or a directory that commands may write; a device is not even opened."""
        try:
            handle = os.open(name, HANDLE, dir_fd=folder)
        except OSError:
            return None  # leads nowhere
        try:
            info, path = os.fstat(handle), f"/proc/self/fd/{handle}"
            real = os.readlink(path)
            if not any(is_below(real, root) for root in self._within):
                return None
            if stat.S_ISREG(info.st_mode):
                return self._read_file(folder, path, info, _FILE)
            if stat.S_ISDIR(info.st_mode) and depth < MAX_DEPTH:
                children = self._read_folder(folder, path, depth, _FOLDER & ~os.O_NOFOLLOW)
                return Node("directory", stat.S_IMODE(info.st_mode), children=children)
        except OSError:
            return Node("other", data=b"unreadable")
        finally:
            os.close(handle)
        return None

    def _read_file(self, folder: int, name: str, info: os.stat_result, flags: int) -> Node:
        mode = stat.S_IMODE(info.st_mode)
        self._files -= 1
        self._bytes -= info.st_size
        facts = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if info.st_size > MAX_FILE or self._files < 0 or self._bytes < 0:
            return Node("file", mode, whole=False, names=info.st_nlink, facts=facts)
        fd = os.open(name, flags, dir_fd=folder)
        try:
            return Node("file", mode, os.read(fd, info.st_size + 1), names=info.st_nlink, facts=facts)
        finally:
            os.close(fd)


def _make_writable(folder: int) -> None:
    """Names in it may be changed by its owner from now on: a command could have forbidden that."""
    info = os.fstat(folder)
    if info.st_mode & stat.S_IRWXU != stat.S_IRWXU and info.st_uid == os.geteuid():
        os.fchmod(folder, stat.S_IMODE(info.st_mode) | stat.S_IRWXU)


def _give_to_owner_of(folder: int, fd: int) -> None:
    """As root, in a directory of somebody else: what is put back is theirs."""
    if os.geteuid() == 0:
        info = os.fstat(folder)
        os.fchown(fd, info.st_uid, info.st_gid)


def write_node(folder: int, name: str, node: Node) -> None:
    """Write an entry where there is none. What was not remembered is left out."""
    _make_writable(folder)
    if node.kind == "link":
        os.symlink(node.data, os.fsencode(name), dir_fd=folder)
    elif node.kind == "directory":
        os.mkdir(name, 0o700, dir_fd=folder)
        fd = os.open(name, _FOLDER, dir_fd=folder)
        try:
            for child, below in node.children.items():
                write_node(fd, child, below)
            _give_to_owner_of(folder, fd)
            os.fchmod(fd, node.mode)
        finally:
            os.close(fd)
    elif node.kind == "file" and node.whole:
        with open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb") as file:
            file.write(node.data)
            _give_to_owner_of(folder, file.fileno())
            os.fchmod(file.fileno(), node.mode & 0o777)


def replace_file(folder: int, name: str, data: bytes, mode: int) -> None:
    """Write a file in place of whatever has that name and is not a directory, in one step."""
    temporary = f"{name}.{secrets.token_hex(8)}"
    write_node(folder, temporary, Node("file", mode, data))
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


class PutBackStore:
    """Where what a review removes or replaces is kept for a person; without a directory, nothing is kept."""

    def __init__(self, state_dir: str | None) -> None:
        self._path = None if state_dir is None else os.path.join(state_dir, "put-back")
        self._batch = ""
        self._count = 0

    @property
    def batch(self) -> str:
        """The name of the directory with what was taken since ``start_batch``; empty if nothing was."""
        return self._batch

    def start_batch(self) -> None:
        """Use a new directory from now on."""
        self._batch = ""
        self._count = 0

    def take(self, folder: int, name: str, label: str) -> None:
        """Move an entry away; ``label`` is its path for people. ``OSError`` if it is still there."""
        _make_writable(folder)
        if self._path is not None:
            with contextlib.suppress(OSError):  # what cannot be kept is removed all the same
                if self._keep(self._path, label, lambda where: _move(folder, name, where)):
                    return
        remove_entry(folder, name)

    def copy(self, node: Node, label: str) -> None:
        """Keep what is about to be replaced in one step, if possible."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._keep(self._path, label, lambda where: write_node(where, "content", node))

    def _keep(self, base: str, label: str, act: Callable[[int], _T]) -> _T:
        """Call ``act`` with a new directory for one entry, named after it."""
        if not self._batch:
            stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
            self._batch = f"{stamp}-{secrets.token_hex(4)}"
        batch = os.path.join(base, self._batch)
        os.makedirs(batch, 0o700, exist_ok=True)
        self._count += 1
        path = os.path.join(batch, f"{self._count:04}-{label.replace('/', '%')[-60:]}")
        os.mkdir(path, 0o700)
        where = os.open(path, _FOLDER)
        try:
            return act(where)
        finally:
            os.close(where)


def _move(folder: int, name: str, where: int) -> bool:
    """Move it, or copy it to another file system; whether it is gone from its place."""
    with contextlib.suppress(OSError):
        os.rename(name, "content", src_dir_fd=folder, dst_dir_fd=where)
        return True
    node = NodeReader().read(folder, name, follow=False)
    if node is not None:
        write_node(where, "content", node)
    return False


def remove_entry(folder: int, name: str) -> None:
    """Remove an entry with everything below it, following no link."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError:
        remove_tree(f"/proc/self/fd/{folder}/{name}")


# -- places and paths --------------------------------------------------------------------------------------------------


def real_paths(roots: Sequence[ScanRoot]) -> list[str]:
    """Where the roots are now."""
    return [root.real_path() for root in roots]


def read_entry(place: EntryPlace, roots: Sequence[ScanRoot], reader: NodeReader) -> Node | None:
    """The entry at a place; None if there is none."""
    try:
        folder = roots[place.root].open_folder(place.parent.path)
    except OSError:
        return None
    try:
        return reader.read(folder, place.name)
    finally:
        os.close(folder)


def real_path(place: EntryPlace, roots: Sequence[ScanRoot]) -> str:
    """The path of a place, which has no link in it if it was found by a scan."""
    return os.path.join(roots[place.root].real_path(), place.path) if place.path else roots[place.root].real_path()


def pointer_target(place: EntryPlace, node: Node | None, roots: Sequence[ScanRoot]) -> str | None:
    """The real path that a ``.git`` file, a link or a ``commondir`` leads to; None if it leads nowhere."""
    if node is None:
        return None
    text = node.data
    if node.kind == "file" and place.name.lower() == ".git":
        if not text.startswith(b"gitdir: "):
            return None
        text = text.removeprefix(b"gitdir: ")
    if node.kind not in ("file", "link") or not node.whole or b"\0" in text:
        return None
    return os.path.realpath(
        os.path.join(real_path(place.parent, roots), os.fsdecode(text if node.kind == "link" else text.rstrip(b"\r\n")))
    )


def place_of(real: str, roots: Sequence[ScanRoot]) -> EntryPlace | None:
    """The place of a real path below a root; None for a root itself and for what is elsewhere."""
    for number, root in enumerate(roots):
        top = root.real_path()
        if real != top and is_below(real, top):
            return EntryPlace(number, real[len(top) + 1 :])
    return None


# -- putting back ------------------------------------------------------------------------------------------------------

Act: TypeAlias = Literal["added", "changed", "removed"]


class Change(NamedTuple):
    """What a command did to one path, and whether the path is as it was again: if not, it was too large to remember
    and has been taken away."""

    path: str
    act: Act
    undone: bool = True


def put_back(
    folder: int, name: str, before: Node | None, now: Node | None, path: str, store: PutBackStore
) -> Iterator[Change]:
    """Make the entry ``name`` of a directory what it was ``before``; ``path`` is its path for people."""
    if is_unchanged(before, now):
        return
    if before is not None and now is not None and before.kind == now.kind == "directory":
        fd = os.open(name, _FOLDER, dir_fd=folder)
        try:
            for child in sorted({*before.children, *now.children}):
                yield from put_back(
                    fd, child, before.children.get(child), now.children.get(child), f"{path}/{child}", store
                )
            os.fchmod(fd, before.mode)
        finally:
            os.close(fd)
        return
    act: Act = "added" if before is None else "removed" if now is None else "changed"
    yield Change(path, act, undone=before is None or _replace(folder, name, before, now, path, store))
    if before is None:
        store.take(folder, name, path)


def _replace(folder: int, name: str, before: Node, now: Node | None, path: str, store: PutBackStore) -> bool:
    if now is not None and now.kind == before.kind == "link" and now.data == before.data:
        if before.target is None:  # it led nowhere that a command may write, and now it does
            store.take(folder, name, path)
            return True
        before = before.target  # the link is the same, so what it led to takes its place
    if not before.is_whole():
        if now is not None:
            store.take(folder, name, path)
        return False
    if before.kind == "file" and now is not None and now.kind == "file" and now.whole:
        store.copy(now, path)
        replace_file(folder, name, before.data, before.mode)
        return True
    if now is not None:
        store.take(folder, name, path)
    write_node(folder, name, before)
    return True


# -- removed directories -----------------------------------------------------------------------------------------------

MAX_GONE: Final = 20_000


class GoneFolders:
    """Directories that commands removed, and the kept entries that went with them: ``kept``, by the place they were in.

    Promise: a kept file that comes back with its directory, by a later command or behind a link, is the one that was
    there. Without this, a command could move a directory away, change a copy of it, and let another command move that in
    its place.
    Limit: beyond ``MAX_GONE`` directories and ``MAX_FILES`` entries, those that go later are not remembered.
    """

    def __init__(self) -> None:
        self._folders: set[EntryPlace] = set()
        self.kept: Final[dict[EntryPlace, Node | None]] = {}

    def __contains__(self, folder: EntryPlace) -> bool:
        return folder in self._folders

    def remember(self, before: Seen, now: Seen, kept: Mapping[EntryPlace, Node | None]) -> None:
        """Add what is not there any more."""
        gone = before.without(now)
        self._folders.update(gone[: MAX_GONE - len(self._folders)])
        for place, node in kept.items():
            if place.parent in self._folders and len(self.kept) < MAX_FILES:
                self.kept[place] = node

    def forget(self, now: Seen) -> None:
        """Remove what is there again: from now on it counts as it is."""
        if self._folders:
            self._folders = {folder for folder in self._folders if not now.had_folder(folder)}
            for place in [place for place in self.kept if now.had_folder(place.parent)]:
                del self.kept[place]

    def behind_links(
        self, roots: Sequence[ScanRoot], before: Seen, now: Seen
    ) -> Iterator[tuple[EntryPlace, EntryPlace]]:
        """Each directory that was there and is now reached through a link, with that link."""
        gone = {*before.without(now), *(folder for folder in self._folders if not now.had_folder(folder))}
        links = [folder for folder in gone if folder.parent not in gone and _is_link(folder, roots)]
        for link in links:
            yield from ((folder, link) for folder in gone if _is_below(folder, link))


def first_link(place: EntryPlace, roots: Sequence[ScanRoot]) -> EntryPlace | None:
    """The outermost directory on the way to an entry that is a link; None if there is none."""
    names = place.path.split("/")[:-1]
    steps = (EntryPlace(place.root, "/".join(names[: count + 1])) for count in range(len(names)))
    return next((step for step in steps if _is_link(step, roots)), None)


def _is_below(folder: EntryPlace, link: EntryPlace) -> bool:
    return folder.root == link.root and is_below(f"/{folder.path}", f"/{link.path}")


def _is_link(place: EntryPlace, roots: Sequence[ScanRoot]) -> bool:
    try:
        return stat.S_ISLNK(os.stat(place.path, dir_fd=roots[place.root].fd, follow_symlinks=False).st_mode)
    except OSError:
        return False
