"""Renames one name in an open directory and never replaces anything unless that was requested.

No function follows a link at either name. Where the kernel or the file system has no ``renameat2``, ``move_new`` and
``exchange`` take several steps: ``move_new`` is still safe then, but during ``exchange`` the second name is missing for
a moment.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import suppress
from typing import Final

from toolkit.guard.files.resolve import os_error

_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2


def move(old_folder: int, old: str, new_folder: int, new: str, *, replace: bool) -> None:
    """Rename; without ``replace``, only to a name that does not exist."""
    if replace:
        os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
    else:
        move_new(old_folder, old, new_folder, new)


def move_new(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Rename to a name that must not exist. The check and the rename are one operation."""
    if not _try_renameat2(old_folder, old, new_folder, new, _RENAME_NOREPLACE):
        _claim_and_move(old_folder, old, new_folder, new)


def exchange(folder: int, spare: str, name: str) -> None:
    """Swap two names in one directory; no other process uses ``spare``.

    Where that takes several steps, the old file of ``name`` is called ``third_name(spare)`` between them.
    """
    if _try_renameat2(folder, spare, folder, name, _RENAME_EXCHANGE):
        return
    os.stat(spare, dir_fd=folder, follow_symlinks=False)
    os.rename(name, third_name(spare), src_dir_fd=folder, dst_dir_fd=folder)
    try:
        move_new(folder, spare, folder, name)
    except OSError:
        with suppress(OSError):
            move_new(folder, third_name(spare), folder, name)
        raise
    os.rename(third_name(spare), spare, src_dir_fd=folder, dst_dir_fd=folder)


def third_name(spare: str) -> str:
    """The additional name that ``exchange`` needs where the system cannot swap two names at once."""
    return f"{spare}~"


def _try_renameat2(old_folder: int, old: str, new_folder: int, new: str, flag: int) -> bool:
    """Whether the system did the rename; False where it has no such call."""
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
    """``move_new`` without ``renameat2``: creating the new name fails if it exists."""
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
