"""Linux system calls the standard library has no name for, made through ``ctypes``.

Everything speaks ``OSError`` and names the step that failed, because that text becomes the reason why a machine
gives no sandbox. Numbers are those of x86_64 and aarch64; other machines are refused by ``machine``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Final

MACHINES: Final = ("x86_64", "aarch64")

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_SECUREBITS: Final = 28
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

# SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, both locked: being uid 0 gives no capability back.
_SECUREBITS: Final = 0x0F
_LAST_CAPABILITY: Final = 63
_CAPABILITY_VERSION_3: Final = 0x20080522
_CLOSE_RANGE_CLOEXEC: Final = 4

# (x86_64, aarch64)
_CAPSET: Final = (126, 91)
_CLONE: Final = (56, 220)
_PRCTL: Final = (157, 167)
_CLOSE_RANGE: Final = (436, 436)


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


class Unsupported(Exception):
    """This machine cannot do what was asked; the text says why."""


def reason(error: Exception) -> str:
    """Why something failed, without the path an ``OSError`` may carry: the text is shown."""
    return (error.strerror or "unknown error").lower() if isinstance(error, OSError) else str(error)


@functools.cache
def machine() -> int:
    """The column of this machine in a table of numbers."""
    name = os.uname().machine
    if sys.platform != "linux" or name not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise Unsupported(f"the sandbox needs Linux on {' or '.join(MACHINES)}, not {sys.platform} on {name}")
    return MACHINES.index(name)


def syscall(what: str, numbers: tuple[int, int] | int, *arguments: object) -> int:
    """Make one call; a failure is an ``OSError`` whose text starts with ``what``."""
    number = numbers if isinstance(numbers, int) else numbers[machine()]
    # A bare Python number would be passed as a C int, and the upper half of the register be left to chance.
    values: list[Any] = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _syscall(ctypes.c_long(number), *values)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(what: str, option: int, value: int = 0) -> int:
    """One ``prctl`` with one value."""
    return syscall(what, _PRCTL, option, value, 0, 0, 0)


def clone(flags: int) -> int:
    """A fork into new namespaces: 0 in the child, its number in the caller.

    Limit: Python's own after-fork work is skipped, which is safe only in a program with a single thread.
    """
    return syscall("new namespaces", _CLONE, flags, 0, 0, 0, 0)


def mark_descriptors_for_closing(first: int) -> None:
    """Every descriptor from ``first`` on is closed when a program is started, whoever opened it."""
    syscall("close_range", _CLOSE_RANGE, first, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def forbid_new_capabilities() -> None:
    """No program started from here on gets a capability, not even as uid 0; those held now stay until dropped.

    Does nothing where the process holds none and so cannot gain any: ``no_new_privs`` is what holds there.
    """
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl("capability bounding set", PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the last one this kernel knows, or not privileged
    try:
        prctl("securebits", PR_SET_SECUREBITS, _SECUREBITS)
    except PermissionError:
        return


def drop_capabilities() -> None:
    """Give up every capability, for good once ``no_new_privs`` is set."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    syscall("drop capabilities", _CAPSET, ctypes.byref(header), ctypes.byref(nothing))


def forbid_new_privileges() -> None:
    """setuid programs and file capabilities give nothing from here on; cannot be taken back."""
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
