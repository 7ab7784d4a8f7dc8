"""Reading text files: regular files only, never through a link, bounded, UTF-8. ``Unreadable`` says what is wrong."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePosixPath

from toolkit.spec.problems import Unreadable, quote
from toolkit.visible import BOM

# O_NONBLOCK: a named pipe in place of a file must not make the loader wait for a writer.
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY


def read_plain_file(path: str | Path, limit: int, *, dir_fd: int | None = None) -> str:
    """The text of the file ``path``, of at most ``limit`` bytes."""
    try:
        descriptor = os.open(path, _FILE, dir_fd=dir_fd)
    except OSError as error:
        raise Unreadable(_explain_os_error(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise Unreadable(_explain_os_error(error)) from None
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise Unreadable(f"the file has more than {limit} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 (byte {error.start})") from None
    refuse_bom(text)
    return text


def read_below(directory: Path, name: str, limit: int) -> str:
    """The text of the file ``name`` in or below ``directory``; no step on the way may be a link."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise Unreadable(f"{quote(name)} is not a relative file name without '..'")
    # Every step starts from the open directory before it, so nothing can be swapped in between.
    descriptor = -1
    try:
        descriptor = os.open(directory, _DIRECTORY)
        for part in parts[:-1]:
            outer, descriptor = descriptor, os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(outer)
        return read_plain_file(parts[-1], limit, dir_fd=descriptor)
    except OSError as error:
        raise Unreadable(_explain_os_error(error)) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def refuse_bom(text: str) -> None:
    if text.startswith(BOM):
        raise Unreadable("the file starts with a byte order mark (BOM): save it as UTF-8 without one")


def _explain_os_error(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "no such file"
    if error.errno == errno.ELOOP:
        return "a symbolic link: only regular files are read"
    if error.errno == errno.ENOTDIR:
        # The kernel also reports this for a link when O_NOFOLLOW opens a directory.
        return "a part of the path is a symbolic link or not a directory"
    return f"cannot be read: {os.strerror(error.errno) if error.errno else 'unknown error'}"
