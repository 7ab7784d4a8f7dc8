"""Opens a path beneath a directory. The check and the open are one operation, so there is no gap to race into.

Two resolvers return the same results: the kernel's (``openat2``, Linux 5.6) and, where that is missing, a walk that
opens one name at a time. Both raise ``OSError``; ``EXDEV`` means that the path would have left the root.

Not stopped: hard links and mounts below the root (they count as inside), and a directory that is moved out of the root
after it was opened. The walk needs one descriptor per level and, on systems without ``O_PATH``, read permission on every
directory it passes.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

Resolver: TypeAlias = Callable[[int, bytes, int], int]
ResolverName: TypeAlias = Literal["auto", "openat2", "walk"]

_O_PATH: Final[int] = getattr(os, "O_PATH", 0)
# Opens a name only to inspect it or to start from it.
HANDLE: Final[int] = (_O_PATH or os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC
READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_SYS_OPENAT2: Final = 437  # x86_64 and aarch64 alike
_AT_FDCWD: Final = -100
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08

_ATTEMPTS: Final = 128
MAX_LINKS: Final = 40  # the kernel's limit


def pick(name: ResolverName) -> Resolver:
    """The resolver with this name; ``auto`` is the kernel's where it exists, else the walk."""
    if name == "walk" or (name == "auto" and not has_openat2()):
        return walk
    if not has_openat2():
        from toolkit.errors import SetupError  # keepers in bubblewrap load this file for every command

        raise SetupError("this machine has no openat2 (Linux 5.6 or newer on x86_64 or aarch64 has it); use 'walk'")
    return openat2


def open_beneath(root_fd: int, text: str, flags: int, resolver: Resolver) -> int:
    """Open ``text`` below ``root_fd``, following only links that stay below it. Never opens anything else.

    Raises ``OSError``: ``EXDEV`` for an escape, ``EAGAIN`` when the path kept changing for too long.
    """
    path = os.fsencode(text)  # the target of a link need not be UTF-8
    for _ in range(_ATTEMPTS - 1):
        try:
            return resolver(root_fd, path, flags)
        except (BlockingIOError, InterruptedError):
            continue  # a directory was renamed concurrently, or a signal arrived
    # For a path with "..", the kernel gives up after any rename on the machine; the walk depends only on its own names.
    return walk(root_fd, path, flags)


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_OpenHow), ctypes.c_size_t]
_syscall.restype = ctypes.c_long


def openat2(root_fd: int, path: bytes, flags: int) -> int:
    """Let the kernel resolve the whole path."""
    how = _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    fd: int = _syscall(_SYS_OPENAT2, root_fd, path, ctypes.byref(how), ctypes.sizeof(how))
    if fd >= 0:
        return fd
    number = ctypes.get_errno()
    if number == errno.ELOOP:
        # Either a loop or a magic link (/proc/self/root). The kernel does not say which; the walk does.
        return walk(root_fd, path, flags)
    raise os_error(number)


def is_plain_directory(root_fd: int, names: tuple[str, ...]) -> bool | None:
    """Whether these names lead to a directory, and no link is on the way; None if one is, or if they lead nowhere."""
    how = _OpenHow(HANDLE, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    fd: int = _syscall(
        _SYS_OPENAT2, root_fd, os.fsencode("/".join(names) or "."), ctypes.byref(how), ctypes.sizeof(how)
    )
    if fd < 0:
        return None
    try:
        return stat.S_ISDIR(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


@functools.cache
def has_openat2() -> bool:
    """Whether the kernel has the call (containers may filter it) and it works: it must refuse ``/``."""
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        return False
    try:
        os.close(openat2(_AT_FDCWD, b"/", HANDLE))
    except OSError as error:
        return error.errno == errno.EXDEV
    return False


def walk(root_fd: int, path: bytes, flags: int) -> int:
    """Resolve name by name. No step follows a link, and ``..`` goes back to a directory that is still open."""
    opened: list[int] = []  # every directory from below the root down to the current one
    todo = _split_reversed(path)  # a stack: the next name is the last item
    links = 0
    try:
        while True:
            here = opened[-1] if opened else root_fd
            name = todo.pop() if todo else b"."
            if name == b"..":
                os.stat(b".", dir_fd=here)  # requires search permission here, as the kernel does
                if not opened:
                    raise os_error(errno.EXDEV)
                os.close(opened.pop())
                continue
            last = not todo
            found = open_step(here, name, flags if last else HANDLE | os.O_DIRECTORY)
            if isinstance(found, bytes):
                links += 1
                if links > MAX_LINKS:
                    raise os_error(errno.ELOOP)
                if last and found.endswith((b"/", b"/.")):
                    flags |= os.O_DIRECTORY
                todo += _split_reversed(found)
            elif last:
                return found
            else:
                opened.append(found)
    finally:
        for fd in opened:
            os.close(fd)


def _split_reversed(path: bytes) -> list[bytes]:
    """The names in reverse order, without slashes: a slash at the end of a name would switch ``O_NOFOLLOW`` off."""
    if path.startswith(b"/"):
        raise os_error(errno.EXDEV)
    return [name for name in reversed(path.split(b"/")) if name not in (b"", b".")]


def open_step(here: int, name: bytes, flags: int) -> int | bytes:
    """Open one name in ``here``. A link is not followed: its target is returned instead of a descriptor."""
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return _read_link(here, name, otherwise=errno.EAGAIN)
        if error.errno == errno.ENOTDIR:  # also what O_DIRECTORY reports for a link
            return _read_link(here, name, otherwise=errno.ENOTDIR)
        raise
    if flags & _O_PATH and stat.S_ISLNK(os.fstat(fd).st_mode):
        os.close(fd)
        return _read_link(here, name, otherwise=errno.EAGAIN)
    return fd


def _read_link(here: int, name: bytes, *, otherwise: int) -> bytes:
    try:
        return os.readlink(name, dir_fd=here)
    except OSError as error:
        if error.errno == errno.EINVAL:  # not a link, or no longer one
            raise os_error(otherwise) from None
        raise


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
