"""The words of the boundary: what a tool may be granted, how a workspace may be used, which sandbox is asked for, and
who is to build it."""

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


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a tool needs, and what it makes use of where it is granted.

    >>> Permissions.of(["write", "read"])
    Permissions(required=('read', 'write'), optional=())
    """

    required: tuple[Permission, ...] = ()
    optional: tuple[Permission, ...] = ()

    @classmethod
    def of(cls, wanted: Permissions | Iterable[Permission]) -> Permissions:
        """The same, checked and in order; a plain list of words is the required ones."""
        given = wanted if isinstance(wanted, Permissions) else cls(_listed(wanted))
        required, optional = _listed(given.required), _listed(given.optional)
        twice = [word for word in optional if word in required]
        if twice:
            raise SetupError(f"the permission {twice[0]!r} is both required and optional")
        return cls(required, optional)

    def within(self, others: Permissions) -> bool:
        """Whether the others ask for all that these ask for."""
        return set(self.required) <= set(others.required) and set(self.optional) <= {*others.required, *others.optional}


def _listed(words: Iterable[Permission]) -> tuple[Permission, ...]:
    if isinstance(words, str):
        raise SetupError(f"permissions are a list: write [{words!r}]")
    given = list(words)
    unknown = [word for word in given if word not in PERMISSIONS]
    if unknown:
        raise SetupError(f"no permission is called {unknown[0]!r}; there are {', '.join(PERMISSIONS)}")
    return tuple(word for word in PERMISSIONS if word in given)
