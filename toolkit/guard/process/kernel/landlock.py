"""Landlock: the kernel denies every file, TCP port and outside process that no rule names. A supervisor, or the command
process before it runs its program, calls this on itself.

Promise: survives ``exec``, holds for uid 0, and cannot be widened. Limits: descriptors opened before stay open;
metadata (``stat``, ``chmod``, ``utime``) and, up to ABI 7, UDP and socket files are not covered; ABI 4 and 5 do not
keep signals and abstract sockets inside. Mounts and the seccomp filter cover what it leaves open.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Final

from toolkit.guard.process.kernel.syscall import syscall

_CREATE_RULESET: Final = 444  # x86_64 and aarch64 alike
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_CHAR: Final = 1 << 6
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
MAKE_SOCK: Final = 1 << 9
MAKE_FIFO: Final = 1 << 10
MAKE_BLOCK: Final = 1 << 11
MAKE_SYM: Final = 1 << 12
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15

READ: Final = EXECUTE | READ_FILE | READ_DIR
# Device nodes are never made, and only the harmless devices get more than reading.
WRITE: Final = (
    READ
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE
)
DEVICE: Final = READ_FILE | WRITE_FILE
_FILE_ONLY: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_BIND_TCP_AND_CONNECT_TCP: Final = 0b11
_SCOPE_SIGNAL: Final = 0b10
_SCOPE_ABSTRACT_UNIX_AND_SIGNAL: Final = 0b11

# The file rights each ABI version added; a kernel refuses rights it does not know.
_FILE_RIGHTS: Final = ((1, REFER - 1), (2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))
_ABI_WITH_TCP: Final = 4
_ABI_WITH_SCOPES: Final = 6


class _RulesetAttr(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def abi() -> int:
    """The Landlock ABI version of this kernel; ``OSError`` where there is none."""
    return syscall("Landlock", _CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)


def restrict(rules: Iterable[tuple[int, int]], *, network: bool) -> None:
    """Restrict this process to what ``rules`` name: pairs of a descriptor and the rights at and below it.

    Without ``network``, TCP is denied too, as far as the kernel can (ABI 4). Needs ``no_new_privs``.
    """
    version = abi()
    known = sum(rights for since, rights in _FILE_RIGHTS if version >= since)
    tcp = 0 if network or version < _ABI_WITH_TCP else _BIND_TCP_AND_CONNECT_TCP
    scopes = _SCOPE_ABSTRACT_UNIX_AND_SIGNAL if version >= _ABI_WITH_SCOPES else 0
    _enforce(_RulesetAttr(known, tcp, scopes), [(fd, rights & known) for fd, rights in rules])


def scope_signals() -> bool:
    """Let signals of this process, and of all it will start, reach only these processes; nothing else changes.

    False where the kernel cannot (before ABI 6). Needs ``no_new_privs``. Tested on the parent process before returning
    True, because a caller that relies on it may signal every process.
    """
    if abi() < _ABI_WITH_SCOPES:
        return False
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    # A ruleset denies moves between directories unless it handles and allows them, so they are allowed everywhere.
    _enforce(_RulesetAttr(REFER, 0, _SCOPE_SIGNAL), [(root, REFER)])
    os.close(root)
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def _enforce(attr: _RulesetAttr, rules: Iterable[tuple[int, int]]) -> None:
    ruleset = syscall("Landlock ruleset", _CREATE_RULESET, ctypes.byref(attr), ctypes.sizeof(attr), 0)
    for fd, rights in rules:
        rule = _PathBeneathAttr(rights, fd)
        syscall("Landlock rule", _ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    syscall("Landlock", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def file_rights(rights: int) -> int:
    """The part of ``rights`` that a rule on a single file may have."""
    return rights & _FILE_ONLY
