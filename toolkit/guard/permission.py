"""Settings of the boundary: permissions of a tool, mode of a workspace, kind of sandbox, what commands may do and use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError

Permission: TypeAlias = Literal["read", "write", "execute", "network"]

PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
ALL_PERMISSIONS: Final[frozenset[Permission]] = frozenset(PERMISSIONS)

Mode: TypeAlias = Literal["workspace-write", "read-only"]
SandboxChoice: TypeAlias = Literal["auto", "full", "reduced", "unsafe-none"]

Carrier: TypeAlias = Literal["own", "bubblewrap"]
CarrierChoice: TypeAlias = Literal["auto", "own", "bubblewrap"]

CommandNetwork: TypeAlias = Literal["none", "guarded", "host"]
"""What a command reaches: a loopback of its own, also what ``Network`` allows, or whatever this machine reaches."""

UnenforcedRules: TypeAlias = Literal["refuse", "accept"]
"""Whether a command runs in a sandbox that cannot hide the paths that rules keep from it."""

GitMode: TypeAlias = Literal["read-only", "commit", "write"]
"""What commands may change in repositories: nothing, everything but what makes git run programs, or everything."""


EndedBy: TypeAlias = Literal["memory", "processes", "file_size", "disk"]
"""The limit that ended a command: a field of ``CommandLimits``."""

_GIB: Final = 1 << 30
_MOST: Final = (1 << 63) - 1  # the kernel's own largest limit
_UNITS: Final = {"GiB": _GIB, "MiB": 1 << 20, "KiB": 1 << 10}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions that a tool needs, and those it uses only if they are granted.

    >>> Permissions.normalize(["write", "read"])
    Permissions(required=('read', 'write'), optional=())
    """

    required: tuple[Permission, ...] = ()
    optional: tuple[Permission, ...] = ()

    @classmethod
    def normalize(cls, wanted: Permissions | Iterable[Permission]) -> Permissions:
        """The same permissions, checked and sorted. A plain list means required ones."""
        given = wanted if isinstance(wanted, Permissions) else cls(_sort_names(wanted))
        required, optional = _sort_names(given.required), _sort_names(given.optional)
        duplicates = [name for name in optional if name in required]
        if duplicates:
            raise SetupError(f"the permission {duplicates[0]!r} is both required and optional; choose one")
        return cls(required, optional)

    def is_within(self, others: Permissions) -> bool:
        """Whether ``others`` include all of these permissions."""
        return set(self.required) <= set(others.required) and set(self.optional) <= {*others.required, *others.optional}


def unknown_permission(name: object) -> str:
    """The error text for a name that is not a permission."""
    return f"{name!r} is not a permission; the permissions are {', '.join(PERMISSIONS)}"


def _sort_names(names: Iterable[Permission]) -> tuple[Permission, ...]:
    if isinstance(names, str):
        raise SetupError(f"permissions must be a list: write [{names!r}]")
    given = list(names)
    unknown = [name for name in given if name not in PERMISSIONS]
    if unknown:
        raise SetupError(unknown_permission(unknown[0]))
    return tuple(name for name in PERMISSIONS if name in given)


def _half_of_memory() -> int:
    """Half of this machine's memory, at most 16 GiB: builds have room, and the machine stays usable."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 4 * _GIB
    return min(16 * _GIB, max(total, 2) // 2)


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """What one command and all it starts may use together. A command that uses more is ended, and its result says why.

    ``memory`` (by default half of the machine's, at most 16 GiB), ``file_size`` (of one file) and ``disk`` (written in
    total) are in bytes; ``processes`` counts processes, and 16 times as many threads are allowed, at least 1024. ``disk``
    does not limit servers, which run until they are closed, but it limits programs that a model wrote.

    >>> CommandLimits(memory=1 << 30).processes
    256
    """

    memory: int = field(default_factory=_half_of_memory)
    processes: int = 256
    file_size: int = 4 * _GIB
    disk: int = 16 * _GIB

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MOST:
                raise SetupError(f"limits: {limit.name} must be a whole number from 1 to {_MOST}, not {value!r}")

    def explain(self, ended_by: EndedBy) -> str:
        """What to tell about a command that this limit ended.

        >>> CommandLimits(memory=1 << 30).explain("memory")
        'killed: the command used more than 1 GiB of memory; the limit is CommandLimits.memory'
        """
        what = {
            "memory": f"killed: the command used more than {_amount(self.memory)} of memory",
            "processes": f"killed: the command had more than {self.processes} processes at once, or far more threads",
            "file_size": f"ended: a file would have become larger than {_amount(self.file_size)}",
            "disk": f"killed: the command wrote more than {_amount(self.disk)} to disk",
        }
        return f"{what[ended_by]}; the limit is CommandLimits.{ended_by}"


def _amount(size: int) -> str:
    for name, unit in _UNITS.items():
        if size % (unit // 4 or 1) == 0 and size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} bytes"
