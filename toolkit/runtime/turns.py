"""Turns: only so many may do something at the same time; the others wait in the order in which they came.

Waiting takes no thread: a turn is a future, for which a thread waits or which a task awaits, until the deadline of the call.
"""

from __future__ import annotations

import contextvars
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from toolkit.errors import Overloaded, SetupError
from toolkit.forks import start_again_in_child
from toolkit.runtime.workers import wait_for_handler

if TYPE_CHECKING:
    from concurrent.futures import Future

    from toolkit.runtime.signals import CallSignal


T = TypeVar("T")

_NO_LIMIT: Final = nullcontext()

_held: Final[contextvars.ContextVar[frozenset[Turns]]] = contextvars.ContextVar("toolkit_turns", default=frozenset())
"""The turns that this code, or whatever started it, has: it would wait for itself."""


class Turns:
    """``limit`` turns at the same time. Who has one and asks for another, directly or not, gets it at once."""

    def __init__(self, limit: int, max_waiting: int, what: str) -> None:
        self._limit: Final = limit
        self._max_waiting: Final = max_waiting
        self._what: Final = what
        self.start_again_in_child()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """Begins with all turns free: whoever had or wanted them is a thread of the parent."""
        self._lock = threading.Lock()
        self._taken = 0
        self._waiting: OrderedDict[Future[None], None] = OrderedDict()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @contextmanager
    def hold(self, signal: CallSignal) -> Iterator[None]:
        """Wait for a turn, have it during the block. Raises what ends the call, or ``Overloaded``."""
        taken = self.wait(signal)
        try:
            with self._marked():
                yield
        finally:
            if taken:
                self._give_back()

    @asynccontextmanager
    async def hold_async(self, signal: CallSignal) -> AsyncIterator[None]:
        """The same, awaited."""
        taken = await self.wait_async(signal)
        try:
            with self._marked():
                yield
        finally:
            if taken:
                self._give_back()

    def lend(self, taken: bool, start: Callable[[], Future[T]]) -> Future[T]:
        """Start work that has the turn until it ends, also if nobody waits for it any more. ``taken`` came from ``wait``."""
        try:
            with self._marked():
                running = start()
        except BaseException:
            if taken:
                self._give_back()
            raise
        if taken:
            running.add_done_callback(lambda _: self._give_back())
        return running

    def wait(self, signal: CallSignal) -> bool:
        """Wait for a turn. Returns False if this code already has one, which stays with whoever gives it back."""
        if self in _held.get():
            return False
        waiting = self._ask()
        if waiting is not None:
            try:
                wait_for_handler(waiting, waiting.cancel, signal)
            except BaseException:
                self._give_up(waiting)
                raise
        return True

    async def wait_async(self, signal: CallSignal) -> bool:
        """The same, awaited."""
        if self in _held.get():
            return False
        waiting = self._ask()
        if waiting is not None:
            import asyncio

            from toolkit.runtime.async_ import await_handler

            try:
                await await_handler(asyncio.wrap_future(waiting), signal, waiting.cancel)
            except BaseException:
                self._give_up(waiting)
                raise
        return True

    @contextmanager
    def _marked(self) -> Iterator[None]:
        """What is started in this block knows that it has a turn."""
        token = _held.set(_held.get() | {self})
        try:
            yield
        finally:
            _held.reset(token)

    def _ask(self) -> Future[None] | None:
        """None if the turn is taken now, else a future that is done when it is."""
        with self._lock:
            if self._taken < self._limit:
                self._taken += 1
                return None
            if len(self._waiting) >= self._max_waiting:
                raise Overloaded(
                    f"too many calls at once: {self._taken} {self._what} run and {len(self._waiting)} wait. Try again later"
                )
            from concurrent.futures import Future

            waiting: Future[None] = Future()
            self._waiting[waiting] = None
            return waiting

    def _give_up(self, waiting: Future[None]) -> None:
        with self._lock:
            was_waiting = waiting in self._waiting
            self._waiting.pop(waiting, None)
        if not was_waiting:
            self._give_back()  # it came at the last moment

    def _give_back(self) -> None:
        with self._lock:
            if not self._waiting:
                self._taken = max(0, self._taken - 1)  # less only in a child that was forked while it had a turn
                return
            waiting, _ = self._waiting.popitem(last=False)
        # If it was cancelled, its owner finds that it does not wait any more, and gives the turn back.
        if waiting.set_running_or_notify_cancel():
            waiting.set_result(None)


class CallLimits:
    """The turns of a toolkit's calls: of all together, and of single tools. Costs nothing where there is no limit."""

    def __init__(self, limits: Concurrency) -> None:
        self._by_tool: Final = {
            name: Turns(limit, limits.waiting, f"calls of {name!r}") for name, limit in limits.by_tool.items()
        }
        self._all: Final = None if limits.calls is None else Turns(limits.calls, limits.waiting, "calls")

    def concern(self, tool: str) -> bool:
        """Whether calls of this tool need a turn."""
        return self._all is not None or tool in self._by_tool

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return sum(turns.waiting for turns in (*self._by_tool.values(), *((self._all,) if self._all else ())))

    def hold(self, tool: str, signal: CallSignal) -> AbstractContextManager[None]:
        """Have a turn of the tool, then one of the toolkit: who waits for a busy tool keeps nobody else waiting."""
        return self._hold(tool, signal) if self.concern(tool) else _NO_LIMIT

    def hold_async(self, tool: str, signal: CallSignal) -> AbstractAsyncContextManager[None]:
        """The same, awaited."""
        return self._hold_async(tool, signal) if self.concern(tool) else _NO_LIMIT

    @contextmanager
    def _hold(self, tool: str, signal: CallSignal) -> Iterator[None]:
        with ExitStack() as stack:
            for turns in (self._by_tool.get(tool), self._all):
                if turns is not None:
                    stack.enter_context(turns.hold(signal))
            yield

    @asynccontextmanager
    async def _hold_async(self, tool: str, signal: CallSignal) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for turns in (self._by_tool.get(tool), self._all):
                if turns is not None:
                    await stack.enter_async_context(turns.hold_async(signal))
            yield


# ----------------------------------------------------------------------------------------------------------------------
# How many calls of a toolkit may run at the same time.


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Limits of one toolkit. What is over a limit waits for its turn; if too much waits already, a call fails at once with
    ``Overloaded`` (``OVERLOADED``), and nothing of it has run.

    >>> limits = Concurrency(calls=8, by_tool={"bash": 2})
    >>> limits.threads, limits.waiting
    (64, 10000)

    :param threads: how many handlers run in threads of the toolkit. Handlers that a deadline has left behind do not count,
        until there are as many of them.
    :param waiting: how many calls may wait, for a thread or for a turn.
    :param calls: how many calls run, whatever their tool; None for no limit.
    :param by_tool: how many calls of single tools run.
    """

    threads: int = 64
    waiting: int = 10_000
    calls: int | None = None
    by_tool: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = {"threads": self.threads, "calls": self.calls}
        numbers |= {f"by_tool[{name!r}]": limit for name, limit in self.by_tool.items()}
        for name, number in numbers.items():
            if number is not None and (type(number) is not int or number < 1):
                raise SetupError(f"Concurrency: {name} must be a whole number from 1 on, not {number!r}")
        if type(self.waiting) is not int or self.waiting < 0:
            raise SetupError(f"Concurrency: waiting must be a whole number from 0 on, not {self.waiting!r}")


@dataclass(frozen=True, slots=True)
class Load:
    """What a toolkit does at this moment.

    :param running: calls that run in threads of the toolkit.
    :param waiting: calls that wait for a thread or for their turn.
    :param abandoned: handlers that still run though their deadline has passed, or their caller has gone.
    :param unwritten: records of calls that the audit log has taken, but not written yet.
    """

    running: int
    waiting: int
    abandoned: int
    unwritten: int = 0
