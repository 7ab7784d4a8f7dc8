"""How many calls run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_MAX_RUNNING: Final = 32
MAX_WAITING: Final = 256


class Turn:
    """The right of one call to run. It is given back while a person thinks: others need not wait for that.

    A program may ask about several calls at once. It has its turn again when the last of them is answered.
    """

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns: Final = turns
        self._is_held = True
        self._questions = 0

    def ask(self) -> None:
        """A question is open from now on."""
        self._questions += 1
        self.give_back()

    async def take_again(self) -> None:
        """A question was answered. Waits for a turn if no other one is open."""
        self._questions -= 1
        if not self._questions and not self._is_held:
            # Before anything is awaited, so that it is taken once. Whoever gives it back meanwhile is even with the end of
            # the wait: one release, one acquisition.
            self._is_held = True
            try:
                await self._turns.acquire()
            except BaseException:
                self._is_held = False
                raise

    def give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._turns.release()


class CallTurns:
    """Lets some calls run, and some more wait. Calls beyond those are refused."""

    def __init__(self) -> None:
        self._turns: Final = asyncio.Semaphore(_MAX_RUNNING)
        self.waiting = 0
        self.running = 0
        """Also those that wait for a person."""

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Turn | None]:
        """The turn of a call; None if too many wait already."""
        if self.waiting >= MAX_WAITING:
            yield None
            return
        self.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.waiting -= 1
        turn = Turn(self._turns)
        self.running += 1
        try:
            yield turn
        finally:
            self.running -= 1
            turn.give_back()
