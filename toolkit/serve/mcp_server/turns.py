"""How many calls run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_MAX_RUNNING: Final = 32
MAX_WAITING: Final = 256


class Turn:
    """The right of one call to run. It is given back while a person thinks: others need not wait for that."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns: Final = turns
        self._is_held = True

    def give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._turns.release()

    async def take_again(self) -> None:
        await self._turns.acquire()
        self._is_held = True


class CallTurns:
    """Lets some calls run, and some more wait. Calls beyond those are refused."""

    def __init__(self) -> None:
        self._turns: Final = asyncio.Semaphore(_MAX_RUNNING)
        self._waiting = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Turn | None]:
        """The turn of a call; None if too many wait already."""
        if self._waiting >= MAX_WAITING:
            yield None
            return
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        turn = Turn(self._turns)
        try:
            yield turn
        finally:
            turn.give_back()
