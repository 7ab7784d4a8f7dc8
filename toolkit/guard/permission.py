"""The four permissions, and nothing else: what a tool may be granted."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Permission: TypeAlias = Literal["read", "write", "execute", "network"]

PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
ALL_PERMISSIONS: Final[frozenset[Permission]] = frozenset(PERMISSIONS)
