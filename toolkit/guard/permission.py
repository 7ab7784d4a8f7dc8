"""Settings of the boundary: permissions of a tool, mode of a workspace, kind of sandbox, and what commands may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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

GitMode: TypeAlias = Literal["read-only", "commit", "write"]
"""What commands may change in repositories: nothing, everything but what makes git run programs, or everything."""


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
