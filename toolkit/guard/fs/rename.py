"""Renaming one name in an open directory, without ever replacing what nobody asked to replace.

Neither call follows a link at either name. Where the kernel or the file system has no ``renameat2``, both are made
of several steps: ``move_new`` stays safe then, and during ``exchange`` there is an instant without the second name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import suppress
from typing import Final

from toolkit.guard.fs.resolve import os_error

_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2


def move_new(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Rename to a name that must not exist: checking that and renaming are one act."""
    if not _renamed(old_folder, old, new_folder, new, _RENAME_NOREPLACE):
        _claim_and_move(old_folder, old, new_folder, new)


def exchange(folder: int, spare: str, name: str) -> None:
    """Let two names in one directory change places; ``spare`` is one that nobody else uses.

    Where that takes several steps, what ``name`` meant is called ``aside(spare)`` between them.
    """
    if _renamed(folder, spare, folder, name, _RENAME_EXCHANGE):
        return
    os.stat(spare, dir_fd=folder, follow_symlinks=False)
    os.rename(name, aside(spare), src_dir_fd=folder, dst_dir_fd=folder)
    try:
        move_new(folder, spare, folder, name)
    except OSError:
        with suppress(OSError):
            move_new(folder, aside(spare), folder, name)
        raise
    os.rename(aside(spare), spare, src_dir_fd=folder, dst_dir_fd=folder)


def aside(spare: str) -> str:
    """The third name that ``exchange`` needs where the system cannot do it at once."""
    return f"{spare}~"


def _renamed(old_folder: int, old: str, new_folder: int, new: str, flag: int) -> bool:
    """Whether the system did it; False where it has no such call."""
    if _renameat2 is None:
        return False
    done = _renameat2(old_folder, os.fsencode(old), new_folder, os.fsencode(new), flag)
    number = ctypes.get_errno()
    if done == 0:
        return True
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise os_error(number)
    return False


def _claim_and_move(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """``move_new`` without the call: making the new name is what fails if it exists."""
    if stat.S_ISDIR(os.stat(old, dir_fd=old_folder, follow_symlinks=False).st_mode):
        os.mkdir(new, dir_fd=new_folder)
        try:
            os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        except OSError:
            with suppress(OSError):
                os.rmdir(new, dir_fd=new_folder)
            raise
    else:
        os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
        os.unlink(old, dir_fd=old_folder)


_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
if _renameat2 is not None:
    _renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
