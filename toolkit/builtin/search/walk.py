"""Going down from a directory without following links and without keeping what was passed open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.guard.handles import DirEntry, SandboxDir


def open_below(start: SandboxDir, steps: Sequence[DirEntry]) -> SandboxDir:
    """The directory that the steps, at least one, lead to.

    A walk that went back to open descriptors would need one for every level or every directory still to be seen.
    """
    folder = start.child(steps[0])
    for step in steps[1:]:
        with folder as above:
            folder = above.child(step)
    return folder


def join(folder: str, name: str) -> str:
    """The path of ``name`` in ``folder``, relative to the workspace."""
    return name if folder == "." else f"{folder}/{name}"


def is_hidden(entry: DirEntry) -> bool:
    return entry.raw.startswith(".")
