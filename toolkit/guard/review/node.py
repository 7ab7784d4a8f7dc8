"""A file, link or directory as it was: reading it into memory, comparing it, writing it again, taking one away.

Promise: nothing here follows a link when it writes or removes. A link is remembered with what it leads to where commands
may write, so that a change behind it is a difference as well; what is elsewhere is not even read, because putting it back
would bring it into the workspace. What is too large to remember is known by its size, inode and times: a change is
seen, but cannot be undone. Limit: owners and times are not remembered; what root puts back belongs to the owner of the
directory.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeVar

from toolkit.guard.files.resolve import HANDLE
from toolkit.guard.process.private_home import remove_tree
from toolkit.guard.process.program import is_below

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
