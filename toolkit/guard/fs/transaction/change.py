"""What a transaction should do, file by file: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from toolkit.guard.files.write import Fingerprint


@dataclass(frozen=True, slots=True)
class Put:
    """Write this content to a file: the one that was read, or a new one with the directories above it.

    :param expected: what was read; None if the name must not exist.
    :param mode: the permissions of the file, without set-id bits; if None, a replaced file keeps its own and a new one gets
        the default by umask.
    :param executable: whether the default by umask includes execute permission.
    """

    path: str
    data: bytes
    expected: Fingerprint | None
    mode: int | None = None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a file. A link is refused: neither the link nor its target is removed."""

    path: str
    expected: Fingerprint


FileChange: TypeAlias = Put | Drop
