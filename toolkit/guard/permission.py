"""The words of the boundary: what a tool may be granted, how a workspace may be used, which sandbox is asked for."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Permission: TypeAlias = Literal["read", "write", "execute", "network"]

PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
ALL_PERMISSIONS: Final[frozenset[Permission]] = frozenset(PERMISSIONS)

Mode: TypeAlias = Literal["workspace-write", "read-only"]
SandboxChoice: TypeAlias = Literal["auto", "full", "reduced", "unsafe-none"]
