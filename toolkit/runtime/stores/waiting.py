"""Waiting for stores: in threads of their own, so that no event loop stands still, and never for ever.

A store is what somebody wrote against an interface: it may be slow, hang, or raise anything.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar, overload

from toolkit.errors import ToolFailed
from toolkit.runtime.workers import LoopThread, Workers

T = TypeVar("T")

MAX_SECONDS: Final = 30.0
"""How long the toolkit waits for one operation of a store. Stores have shorter limits of their own."""
_SECONDS_FOR_AN_END: Final = 0.25
"""How long at least, where the deadline of a call is near or has passed: the call has happened."""

_threads: Final = Workers(max_threads=32)
_loop: Final = LoopThread()
"""Runs async stores for sync callers. It is one loop for all of them: connections belong to the loop that opened them."""


def in_event_loop() -> bool:
    """Whether the caller runs in an event loop, where waiting would stop everything else."""
    return "asyncio" in sys.modules and asyncio._get_running_loop() is not None


def start_store(work: Callable[[], T]) -> Future[T]:
    """Starts work with a store in a thread."""
    return _threads.submit(work)


def seconds_for_store(left: float | None) -> float:
    """How long a call waits for a store that still has so many seconds; None if it has no deadline."""
    return MAX_SECONDS if left is None else min(MAX_SECONDS, max(_SECONDS_FOR_AN_END, left))


def use_store(work: Callable[[], T], seconds: float = MAX_SECONDS) -> T:
    """The result of work with a store; raises ``ToolFailed`` if it takes too long."""
    running = start_store(work)
    try:
        return running.result(seconds)
    except TimeoutError:
        if running.done():
            raise
        _threads.abandon(running)
        raise too_slow(seconds) from None


async def use_store_async(work: Callable[[], T], seconds: float = MAX_SECONDS) -> T:
    """The same, awaited."""
    running = start_store(work)
    done, _ = await asyncio.wait({asyncio.wrap_future(running)}, timeout=seconds)
    if not done:
        _threads.abandon(running)
        raise too_slow(seconds)
    return running.result()


@overload
def wait_for(answer: Awaitable[T]) -> T: ...
@overload
def wait_for(answer: T) -> T: ...
def wait_for(answer: Any) -> Any:
    """What a method of a store returns, whether the store is sync or async. Not for code in an event loop: await it there.

    >>> async def read() -> str:
    ...     return "kept"
    >>> wait_for(read()), wait_for("kept")
    ('kept', 'kept')
    """
    if not inspect.isawaitable(answer):
        return answer
    running, stop = _loop.submit(answer)
    try:
        return running.result(MAX_SECONDS)
    except TimeoutError:
        if running.done():
            raise
        stop()
        raise too_slow(MAX_SECONDS) from None


def is_async_store(store: Any) -> bool:
    """Whether any method of a store must be awaited."""
    return any(
        inspect.iscoroutinefunction(getattr(type(store), name, None)) for name in dir(type(store)) if name[0] != "_"
    )


class BlockingStore:
    """An async store for sync callers: the same methods, which wait."""

    def __init__(self, store: Any) -> None:
        self._store: Final = store

    def __repr__(self) -> str:
        return f"BlockingStore({self._store!r})"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return (lambda *given, **named: wait_for(found(*given, **named))) if callable(found) else found


def as_blocking(store: Any) -> Any:
    """The store itself if it is sync, else one whose methods wait."""
    return BlockingStore(store) if is_async_store(store) else store


def too_slow(seconds: float) -> ToolFailed:
    """The error for a store that does not answer."""
    return ToolFailed("IO", f"the store did not answer within {seconds:.3g} s")
