"""What a transaction is asked to do, file by file: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from toolkit.guard.fs.write import Fingerprint


@dataclass(frozen=True, slots=True)
class Put:
    """A file is to have this content: the one that was read, or a new one, with the directories above it.

    :param expected: what was read; None if there must be nothing of that name.
    :param mode: the permissions to give it, set-id bits left out; if None, a replaced file's own, else what umask leaves.
    :param executable: whether umask is to leave a new file executable.
    """

    path: str
    data: bytes
    expected: Fingerprint | None
    mode: int | None = None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """A file is to go. Not a link: neither it nor what it leads to."""

    path: str
    expected: Fingerprint


Change: TypeAlias = Put | Drop
