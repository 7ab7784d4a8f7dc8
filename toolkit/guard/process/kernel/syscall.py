"""Linux system calls that the standard library does not have, made through ``ctypes``.

Every failure is an ``OSError`` that names the step, because that text becomes the reason why a machine has no sandbox.
Numbers are those of x86_64 and aarch64; ``machine`` refuses other architectures.
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

# SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, both locked: uid 0 does not regain any capability.
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
    """This machine cannot do what was asked; the message says why."""


def reason(error: Exception) -> str:
    """Why something failed, without the path an ``OSError`` may carry: the text is shown to callers."""
    return (error.strerror or "unknown error").lower() if isinstance(error, OSError) else str(error)


def number_of(error: Exception) -> int:
    """The ``errno`` of an error, 0 if it has none: it tells what may pass from what this machine cannot do."""
    return (error.errno or 0) if isinstance(error, OSError) else 0


@functools.cache
def machine() -> int:
    """The column of this machine in the tables of system call numbers."""
    name = os.uname().machine
    if sys.platform != "linux" or name not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise Unsupported(f"the sandbox needs Linux on {' or '.join(MACHINES)}, not {sys.platform} on {name}")
    return MACHINES.index(name)


def syscall(what: str, numbers: tuple[int, int] | int, *arguments: object) -> int:
    """Make one system call; a failure is an ``OSError`` whose message starts with ``what``."""
    number = numbers if isinstance(numbers, int) else numbers[machine()]
    # A bare Python number would be passed as a C int, which leaves the upper half of the register undefined.
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
    """Fork into new namespaces: returns 0 in the child, its pid in the caller.

    Limit: skips Python's own work after a fork, which is safe only in a process with a single thread.
    """
    return syscall("new namespaces", _CLONE, flags, 0, 0, 0, 0)


def mark_descriptors_for_closing(first: int) -> None:
    """Close every descriptor from ``first`` on when a program is started, no matter who opened it."""
    syscall("close_range", _CLOSE_RANGE, first, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def forbid_new_capabilities() -> None:
    """No program started from here on gets a capability, not even as uid 0; those held now stay until dropped.

    Does nothing where the process holds none: there ``no_new_privs`` keeps it from gaining any.
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
    """Drop every capability, for good once ``no_new_privs`` is set."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    syscall("drop capabilities", _CAPSET, ctypes.byref(header), ctypes.byref(nothing))


def forbid_new_privileges() -> None:
    """setuid programs and file capabilities have no effect from here on; cannot be undone."""
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
