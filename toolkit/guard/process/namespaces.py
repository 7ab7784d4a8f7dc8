"""The command's own file system, process list and network: user, mount, pid, net, ipc and uts namespaces.

The fork server calls ``enter`` once: it leaves a root directory that contains system programs, the given roots and
nothing else of the host. ``CHILD`` are the namespaces each command is cloned into; there its supervisor calls
``mount_private`` for its own ``/proc`` and ``/tmp``, and ``protect_places`` for what its command may not change.

Promise: what is not listed here does not exist for a command, neither to read nor to ``stat``; everything is read-only
but ``/tmp`` and the writable roots; set-user-id bits and device nodes have no effect. Limit: a file system mounted below
a root belongs to that root.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
from typing import Final

from toolkit.guard.files.resolve import HANDLE, open_beneath, openat2
from toolkit.guard.process.kernel import PR_SET_DUMPABLE, Unsupported, forbid_new_capabilities, prctl, syscall
from toolkit.guard.process.messages import MOVED, CommandRequest, HeldEntry, Roots, identity
from toolkit.guard.process.program import SYSTEM
from toolkit.guard.process.supervisor import DEV_LINKS, DEVICES, ETC, TMP, TMP_BYTES, fill_tmp

_NEWNS: Final = 0x00020000
_NEWUTS: Final = 0x04000000
_NEWIPC: Final = 0x08000000
_NEWUSER: Final = 0x10000000
_NEWPID: Final = 0x20000000
_NEWNET: Final = 0x40000000

CHILD: Final = _NEWPID | _NEWNS | _NEWIPC
CHILD_OFFLINE: Final = CHILD | _NEWNET

# (x86_64, aarch64); one number where they agree
_UNSHARE: Final = (272, 97)
_MOUNT: Final = (165, 40)
_UMOUNT2: Final = (166, 39)
_PIVOT_ROOT: Final = (155, 41)
_SETHOSTNAME: Final = (170, 161)
_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_MOUNT_SETATTR: Final = 442

_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_CLONE_FLAGS: Final = 1 | os.O_CLOEXEC | _AT_RECURSIVE  # OPEN_TREE_CLONE
_MOVE_EMPTY_SOURCE: Final = 0x04
_MOVE_EMPTY_PATHS: Final = 0x44
_MNT_DETACH: Final = 2
_MS_PRIVATE: Final = 1 << 18

_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1

_RDONLY: Final = 1
_NOSUID: Final = 2
_NODEV: Final = 4
_NOEXEC: Final = 8

_OWN_PID_MAX: Final = (6, 14)  # the first kernel where it belongs to the namespace
_TMPFS: Final = f"mode=1777,size={TMP_BYTES},nr_inodes=200k".encode()
# What is mounted over hidden entries. Nobody may look into it, or into the directory around the two.
_NOTHING: Final = "/.hidden"
_EMPTY_FILE: Final = f"{_NOTHING}/file"
_EMPTY_FOLDER: Final = f"{_NOTHING}/folder"


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def enter(roots: Roots, workspace_fd: int) -> None:
    """Move this process into a user and mount namespace of its own, with a new root directory."""
    os.fchdir(workspace_fd)  # the current directory stays the same, whatever its name leads to by now
    _new_user()
    _set_attributes(_AT_FDCWD, "/", 0, propagation=_MS_PRIVATE)
    syscall("host name", _SETHOSTNAME, b"sandbox", 7)
    trees = _clone_trees(roots)
    _mount("tmpfs", "/usr", 0, b"mode=0755,size=16m")  # any directory will do: it becomes the root
    os.chdir("/usr")
    for path in trees:
        _attach(trees[path], path[1:])
    _make_links()
    _make_nothing()
    syscall("pivot_root", _PIVOT_ROOT, b".", b".")
    syscall("leave the old root", _UMOUNT2, b".", _MNT_DETACH)
    os.chdir("/")
    _set_attributes(_AT_FDCWD, "/", _RDONLY | _NOSUID | _NODEV, recursive=False)
    forbid_new_capabilities()


def mount_private(roots: Roots, *, tasks: int) -> None:
    """Give the first process of new namespaces its own /proc and /tmp, and at most so many processes and threads.

    Limit: kernels before 6.14 cannot limit the tasks of a namespace.
    """
    _mount("proc", "/proc", _NOSUID | _NODEV | _NOEXEC, None)
    _limit_tasks(tasks)
    # uid 0 owns the switches of the whole machine below /proc/sys, capabilities or not.
    _set_attributes(_AT_FDCWD, "/proc", _RDONLY, recursive=False)
    hidden = {path: _clone_tree(path) for path in roots.outermost_below(TMP)}  # with the mounts below them
    _mount("tmpfs", TMP, _NOSUID | _NODEV, _TMPFS)
    for path, tree in hidden.items():
        _attach(tree, path)


def protect_places(roots: Roots, request: CommandRequest) -> None:
    """Fill the new ``/tmp``, hold what this command may not change as it is now, and cover what it may not open."""
    fill_tmp(request.gitconfig)
    if request.read_only:
        for path in (roots.workspace, *roots.write):
            _set_attributes(_AT_FDCWD, path, _RDONLY)
    else:
        for entry in request.held:
            _hold(entry)
        if roots.workspace_writable:
            _hold_trusted_code(roots)
    _limit_paths(request)


def bring_up_loopback() -> None:
    """Give the network of this process, which must be a new one, the addresses 127.0.0.1 and ::1; it has no others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _new_user() -> None:
    uid, gid = os.geteuid(), os.getegid()
    syscall("new user namespace", _UNSHARE, _NEWUSER | _NEWNS | _NEWUTS | _NEWIPC)
    # /proc/self cannot be written in a new user namespace while the process is not dumpable.
    prctl("dumpable", PR_SET_DUMPABLE, 1)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError as error:
            number = error.errno or errno.EIO
            raise OSError(number, f"user namespace {name}: {os.strerror(number)}") from None
    prctl("dumpable", PR_SET_DUMPABLE, 0)


def _clone_trees(roots: Roots) -> dict[str, int]:
    """A detached copy of every mount of the new root, by its path there, outermost first."""
    trees: dict[str, int] = {
        "/proc": _clone_tree("/proc")
    }  # the kernel allows a new one only where an old one is visible
    reading = [*(path for path in SYSTEM if not os.path.islink(path)), *ETC, *roots.read]
    for path in reading:
        if os.path.exists(path):
            trees[path] = _clone_root(path, roots)
            _set_attributes(trees[path], "", _RDONLY | _NOSUID | _NODEV)
    for path in DEVICES:
        trees[path] = _clone_tree(path)
        _set_attributes(trees[path], "", _RDONLY | _NOSUID | _NOEXEC)
    for path in roots.write:
        trees[path] = _clone_root(path, roots)
        _set_attributes(trees[path], "", _NOSUID | _NODEV)
    trees[roots.workspace] = _clone_tree(".")
    _set_attributes(trees[roots.workspace], "", _NOSUID | _NODEV | (0 if roots.workspace_writable else _RDONLY))
    return dict(sorted(trees.items()))


def _make_links() -> None:
    for path in SYSTEM:  # a link among them (/bin -> usr/bin) stays a link
        if os.path.islink(path):
            os.symlink(os.readlink(path), path[1:])
    for folder in ("tmp", "var", "dev"):
        os.makedirs(folder, exist_ok=True)
    for name, target in {"var/tmp": TMP, **{f"dev/{name}": target for name, target in DEV_LINKS.items()}}.items():
        if not os.path.lexists(name):  # a root of the caller may be there
            os.symlink(target, name)


def _make_nothing() -> None:
    os.mkdir(_NOTHING[1:])
    os.mkdir(_EMPTY_FOLDER[1:], 0)
    os.close(os.open(_EMPTY_FILE[1:], os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
    os.chmod(_NOTHING[1:], 0)


def _limit_tasks(most: int) -> None:
    """Older kernels have one such switch, for the whole machine, and uid 0 could turn it: there the supervisor counts."""
    version = tuple(int(part) for part in os.uname().release.replace("-", ".").split(".")[:2] if part.isdigit())
    if version >= _OWN_PID_MAX:
        with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as file:
            file.write(str(most))


def _hold(entry: HeldEntry) -> None:
    """Make an entry a mount of its own; one that was replaced meanwhile is refused, or left alone if not required."""
    root = os.open(entry.root, HANDLE | os.O_DIRECTORY)
    place = -1
    try:
        place = open_beneath(root, entry.path or ".", HANDLE | os.O_NOFOLLOW, openat2)
        if identity(os.fstat(place)) != entry.identity:
            raise FileNotFoundError
    except OSError:
        if entry.required:
            raise Unsupported("a repository was changed while the command was being started; run it again") from None
    else:
        _mount_onto_itself(place, _RDONLY if entry.read_only else 0)
    finally:
        for fd in (root, place):
            if fd >= 0:
                os.close(fd)


def _hold_trusted_code(roots: Roots) -> None:
    """Keep what the interpreter loads as it is: read-only mounts, also on links, below directories that cannot be moved.

    Limit: moving a file between a directory on the way to such a place and one outside it needs a copy (``EXDEV``).
    """
    parents: set[str] = set()
    for place in roots.trusted:  # sorted: what is inside another one comes after it
        around = roots.writable_around(place)
        root = os.open(around, HANDLE | os.O_DIRECTORY)
        names = os.path.relpath(place, around).split("/")
        for parent in ("/".join(names[:count]) for count in range(1, len(names))):
            if f"{around}/{parent}" not in parents:
                parents.add(f"{around}/{parent}")
                _hold_place(root, parent, 0)
        _hold_place(root, "/".join(names), _RDONLY)
        os.close(root)


def _limit_paths(request: CommandRequest) -> None:
    """Mount over what path rules keep from this command: nothing, or the same read-only. Also over links."""
    ways: set[str] = set()
    for entry in request.limited:  # sorted: what is inside another one comes after it
        if not entry.path:
            _set_attributes(_AT_FDCWD, entry.root, _RDONLY)
            continue
        root = os.open(entry.root, HANDLE | os.O_DIRECTORY)
        names = entry.path.split("/")
        for way in ("/".join(names[:count]) for count in range(1, len(names))) if entry.holds_way else ():
            if f"{entry.root}/{way}" not in ways:
                ways.add(f"{entry.root}/{way}")
                _hold_place(root, way, 0)
        try:
            place = open_beneath(root, entry.path, HANDLE | os.O_NOFOLLOW, openat2)
            info = os.fstat(place)
            if identity(info) != entry.identity:
                raise FileNotFoundError
        except OSError:
            raise Unsupported(MOVED) from None
        if entry.hides:
            is_folder = stat.S_ISDIR(info.st_mode)
            tree = _clone_tree(_EMPTY_FOLDER if is_folder else _EMPTY_FILE)
            _set_attributes(tree, "", _RDONLY | _NOSUID | _NODEV | _NOEXEC)
            syscall("hide a path", _MOVE_MOUNT, tree, b"", place, b"", _MOVE_EMPTY_PATHS)
            os.close(tree)
        else:
            _mount_onto_itself(place, _RDONLY)
        os.close(place)
        os.close(root)


def _hold_place(root: int, path: str, attributes: int) -> None:
    """Make ``path``, or a link of that name, a mount of its own if it exists."""
    try:
        place = open_beneath(root, path, HANDLE | os.O_NOFOLLOW, openat2)
    except OSError:
        return
    _mount_onto_itself(place, attributes)
    os.close(place)


def _mount_onto_itself(place: int, attributes: int) -> None:
    tree = syscall("protect a place", _OPEN_TREE, place, b"", _CLONE_FLAGS | _AT_EMPTY_PATH)
    _set_attributes(tree, "", attributes | _NOSUID | _NODEV)
    syscall("protect a place", _MOVE_MOUNT, tree, b"", place, b"", _MOVE_EMPTY_PATHS)
    os.close(tree)


def _clone_root(path: str, roots: Roots) -> int:
    tree = _clone_tree(path)
    roots.refuse_replaced(path, os.fstat(tree))
    return tree


def _clone_tree(path: str) -> int:
    return syscall("copy a mount", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), _CLONE_FLAGS)


def _attach(tree: int, path: str) -> None:
    """Mount a detached tree at ``path``, making the mount point if it is missing, and close the handle."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(path, exist_ok=True)
    elif not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    syscall("place a mount", _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(path), _MOVE_EMPTY_SOURCE)
    os.close(tree)


def _mount(kind: str, path: str, attributes: int, options: bytes | None) -> None:
    # The first four flags of mount(2) have the same numbers as the mount attributes.
    syscall(f"mount a new {kind}", _MOUNT, kind.encode(), path.encode(), kind.encode(), attributes, options)


def _set_attributes(folder: int, path: str, attributes: int, *, propagation: int = 0, recursive: bool = True) -> None:
    attr = _MountAttr(attributes, 0, propagation, 0)
    flags = (0 if path else _AT_EMPTY_PATH) | (_AT_RECURSIVE if recursive else 0)
    syscall(
        "mount attributes",
        _MOUNT_SETATTR,
        folder,
        os.fsencode(path),
        flags,
        ctypes.byref(attr),
        ctypes.sizeof(attr),
    )
