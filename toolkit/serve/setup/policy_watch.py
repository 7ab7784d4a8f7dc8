"""Notices that a policy file has changed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

_SECONDS: Final = 0.5
FileState: TypeAlias = tuple[int, int, int] | None
logger: Final = logging.getLogger("toolkit.serve")


async def watch_policy(file: Path, known: FileState, on_change: Callable[[str | None], Awaitable[None]]) -> None:
    """Calls ``on_change`` whenever the file is another one than before, with a sentence if it is gone.

    A change counts when the file has stayed the same for one more look: a file that is just being written may hold the
    first rules only, and so allow more than it will.
    """
    seen = known
    while True:
        await asyncio.sleep(_SECONDS)
        now = file_state(file)
        if now != known and now == seen:
            known = now
            try:
                await on_change(None if now is not None else f"{file} is gone")
            except Exception:  # the next change is noticed all the same
                logger.exception("a changed policy could not be used")
        seen = now


def file_state(file: Path) -> FileState:
    """What differs when a file was written or replaced; None without a file."""
    try:
        info = os.stat(file)
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino
