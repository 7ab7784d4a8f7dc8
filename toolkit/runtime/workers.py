"""Daemon threads for handlers that must not block their caller, and an event loop for async handlers.

The standard executors join their threads when the interpreter exits, so a handler that was abandoned at its deadline
would keep the process alive. These threads are daemons, and are reused while idle.

A forked child has none of its parent's threads: there, threads and loops are started anew at their next use.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import CO_VARARGS
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from toolkit.errors import Overloaded, ToolCancelled, ToolTimeout
from toolkit.forks import start_again_in_child

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future
    from queue import SimpleQueue

    from toolkit.runtime.signals import CallSignal


# ----------------------------------------------------------------------------------------------------------------------
# Exceptions that are meant for the whole program, not for one call.
#
# A signal handler runs in the main thread, inside whatever runs there. What it raises (``sys.exit`` at SIGTERM, say)
# comes out of a tool's handler as if the tool had raised it, and must end the program; a tool that calls ``sys.exit``
# itself only fails.


def is_interruption(error: BaseException) -> bool:
    """Whether the error is a Ctrl-C, or was raised by a signal handler of the program to end more than a call."""
    if isinstance(error, Exception) or threading.current_thread() is not threading.main_thread():
        return False
    return isinstance(error, KeyboardInterrupt) or _comes_from_signal_handler(error)


def _comes_from_signal_handler(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if _is_signal_handler(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _is_signal_handler(frame: FrameType) -> bool:
    """Whether Python called this function for a signal: it gets the frame that was interrupted, which is also its caller."""
    caller, code = frame.f_back, frame.f_code
    if caller is None:
        return False
    count = code.co_argcount + bool(code.co_flags & CO_VARARGS) + code.co_kwonlyargcount
    values = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return any(value is caller or (isinstance(value, tuple) and caller in value) for value in values)


T = TypeVar("T")
U = TypeVar("U")

Job = Callable[[], None]
Stop = Callable[[], object]
"""Asks work to stop; what it returns means nothing."""

MAX_AT_ONCE: Final = 16
"""How many calls of one ``call_all`` run at the same time, and how many idle threads are kept."""
MAX_THREADS: Final = 64
"""How many threads of one pool work at the same time, unless the context says otherwise."""
MAX_WAITING: Final = 10_000
"""How much work may wait for a thread."""
IDLE_SECONDS: Final = 5.0
"""How long a thread waits for more work before it ends."""


@dataclass(slots=True, eq=False)
class _Task:
    """A function that waits for a thread, or runs in one."""

    run: Job
    future: Future[Any]


class Workers:
    """Runs functions in daemon threads, with the caller's context variables: a few at once, more wait, the rest is refused.

    Work that was submitted by work of the same pool starts at once: it would wait for threads that wait for it.
    """

    def __init__(
        self, max_threads: int = MAX_THREADS, max_waiting: int = MAX_WAITING, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._max_threads: Final = max_threads
        self._max_waiting: Final = max_waiting
        self._idle_seconds: Final = idle_seconds
        self._closed = False
        self.start_again_in_child()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """Begins without threads, as at first."""
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Task | None]] = []
        self._waiting: OrderedDict[Future[Any], _Task] = OrderedDict()
        self._running: set[Future[Any]] = set()
        self._nested: set[Future[Any]] = set()
        self._abandoned: set[Future[Any] | asyncio.Future[Any]] = set()

    @property
    def running(self) -> int:
        """How many functions run in threads, without the abandoned ones."""
        return len(self._running) + len(self._nested)

    @property
    def waiting(self) -> int:
        """How many functions wait for a thread."""
        return len(self._waiting)

    @property
    def abandoned(self) -> int:
        """How many functions still run though nobody waits for them any more."""
        return len(self._abandoned)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Starts ``function`` in a thread, or as soon as one is free; raises ``Overloaded`` if too much waits already."""
        from concurrent.futures import Future

        future: Future[T] = Future()
        context = contextvars.copy_context()
        is_nested = context.get(_pool) is self

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = context.run(self._call_inside, function)
            except BaseException as error:
                future.set_exception(contain(error))
            else:
                future.set_result(result)

        self._start(_Task(run, future), is_nested=is_nested)
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Nobody waits for this work any more. Its thread no longer counts, unless too many were left already."""
        future.cancel()
        with self._lock:
            if future not in self._running or len(self._abandoned) >= self._max_threads:
                return
            self._running.discard(future)
            self._abandoned.add(future)
            task = self._take_waiting()
        if task is not None and not self._run_in_thread(task):
            self._wait_again(task)

    def count_abandoned(self, task: asyncio.Future[Any]) -> None:
        """Counts a task of an event loop among the abandoned ones until it ends."""
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)

    def map(self, function: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """The results of ``function`` for every item, in order, at most 16 at once; ``function`` must not raise.

        The caller works as well: however few threads can be had, every item gets its result.
        """
        results: dict[int, U] = {}
        left = iter(enumerate(items))  # taking the next one is atomic

        def work() -> None:
            for index, item in left:
                results[index] = function(item)

        helpers = []
        with contextlib.suppress(Overloaded):
            for _ in range(min(len(items), MAX_AT_ONCE) - 1):
                helpers.append(self.submit(work))
        work()
        for helper in helpers:
            # The caller has done the work of a helper that never got a thread, even if the pool was closed meanwhile.
            if not helper.cancel():
                helper.exception()
        return [results[index] for index in range(len(items))]

    def close(self) -> None:
        """Ends the idle threads; busy ones end with their job, and what waits never starts."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            waiting, self._waiting = self._waiting, OrderedDict()
        for inbox in idle:
            inbox.put(None)
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(ToolCancelled("the toolkit was closed"))

    def _call_inside(self, function: Callable[[], T]) -> T:
        _pool.set(self)
        return function()

    def _start(self, task: _Task, *, is_nested: bool) -> None:
        with self._lock:
            if not is_nested and len(self._running) >= self._max_threads:
                if len(self._waiting) >= self._max_waiting:
                    raise self._refuse(f"{len(self._waiting)} calls wait already")
                self._waiting[task.future] = task
                # One that is cancelled no longer waits.
                task.future.add_done_callback(lambda future: self._waiting.pop(future, None))
                return
            (self._nested if is_nested else self._running).add(task.future)
        if not self._run_in_thread(task) and (is_nested or not self._wait_again(task)):
            raise self._refuse("the system starts no more threads")

    def _wait_again(self, task: _Task) -> bool:
        """Lets work wait for one of the threads that are busy; returns False if there is none."""
        with self._lock:
            self._forget(task.future)
            if self._running:
                self._waiting[task.future] = task
                self._waiting.move_to_end(task.future, last=False)
            return bool(self._running)

    def _run_in_thread(self, task: _Task) -> bool:
        """Gives work to an idle thread or a new one; returns False if the system starts none."""
        from queue import SimpleQueue

        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            try:
                threading.Thread(target=self._work, args=(inbox,), name="toolkit-worker", daemon=True).start()
            except RuntimeError:
                with self._lock:
                    self._forget(task.future)
                return False
        inbox.put(task)
        return True

    def _work(self, inbox: SimpleQueue[_Task | None]) -> None:
        while (task := self._next_task(inbox)) is not None:
            task.run()
            with self._lock:
                self._forget(task.future)
                task = self._take_waiting()
                if task is None and (self._closed or len(self._idle) >= MAX_AT_ONCE):
                    return
                if task is None:
                    self._idle.append(inbox)
            if task is not None:
                inbox.put(task)

    def _next_task(self, inbox: SimpleQueue[_Task | None]) -> _Task | None:
        """What a thread does next; None if it is to end."""
        from queue import Empty

        while True:
            try:
                return inbox.get(timeout=self._idle_seconds)
            except Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return None
                # Somebody has just taken it from the idle ones, and is about to put work into it.

    def _take_waiting(self) -> _Task | None:
        """The next work, if one may start now. Called with the lock."""
        if not self._waiting or len(self._running) >= self._max_threads:
            return None
        future, task = self._waiting.popitem(last=False)
        self._running.add(future)
        return task

    def _forget(self, future: Future[Any]) -> None:
        self._running.discard(future)
        self._nested.discard(future)
        self._abandoned.discard(future)

    def _refuse(self, why: str) -> Overloaded:
        left = f", and {len(self._abandoned)} that were given up still run" if self._abandoned else ""
        return Overloaded(f"too many calls at once: {len(self._running)} run{left}; {why}. Try again later")


_pool: contextvars.ContextVar[Workers | None] = contextvars.ContextVar("toolkit_pool", default=None)
"""The pool in which this code runs."""
_loops_of_the_parent: Final[list[object]] = []


def contain(error: BaseException) -> Exception:
    """The error of a handler as one that futures and loops carry: not ``SystemExit``, ``StopIteration`` and the like."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    contained = RuntimeError(f"the handler raised {type(error).__name__}")
    contained.__cause__ = error
    return contained


_handler_of: contextvars.ContextVar[LoopThread | None] = contextvars.ContextVar("toolkit_handler_of", default=None)


class LoopThread:
    """An event loop in its own thread, started at first use. All async handlers of a sync toolkit run there, so that
    what they keep between calls stays usable, and so that they work when the caller itself runs in a loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """Begins without a thread, as at first.

        The loop of the parent is kept: the tasks in it must not be collected here, where their ``finally`` would undo what
        the parent is still doing.
        """
        if self._loop is not None:
            _loops_of_the_parent.append((self._loop, self._waiting))
        self._loop = self._thread = None
        self._lock = threading.Lock()
        self._waiting = set()

    @property
    def waits_for_caller(self) -> bool:
        """Whether the caller was started, directly or not, by a handler in this loop: waiting would be a deadlock."""
        return _handler_of.get() is self

    @staticmethod
    def leave() -> None:
        """Called in a thread that the loop does not wait for, though a handler in the loop started it."""
        _handler_of.set(None)

    def submit(self, work: Awaitable[T]) -> tuple[Future[T], Job]:
        """Awaits ``work`` in the loop; returns a future, done when the work has really ended, and what cancels it."""
        from concurrent.futures import Future

        loop = self._ensure_loop()
        future: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []
        self._waiting.add(future)

        def start() -> None:
            # call_soon copied the caller's context variables; the task copies them from here.
            _handler_of.set(self)
            tasks.append(start_contained(work, loop))
            tasks[0].add_done_callback(finish)

        def finish(task: asyncio.Task[T]) -> None:
            self._waiting.discard(future)
            if task.cancelled() and self._loop is not loop:
                future.set_exception(ToolCancelled("the toolkit was closed"))
            elif task.cancelled():
                future.cancel()
                future.set_running_or_notify_cancel()
            elif (error := task.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result())

        def stop() -> None:
            # A loop that is already closed has cancelled it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())

        loop.call_soon_threadsafe(start)
        return future, stop

    def call_soon(self, job: Job) -> None:
        """Calls ``job`` in the loop, after what was submitted before; does nothing without a loop."""
        if (loop := self._loop) is not None:
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(job)

    def close(self) -> None:
        """Cancels what still runs, lets it clean up, then ends the loop."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and thread is not threading.current_thread():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=5)

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="toolkit-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=2))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            # No caller may wait forever for a handler whose loop has ended.
            for future in list(self._waiting):
                future.set_exception(ToolCancelled("the toolkit was closed", details={"abandoned": True}))
            loop.close()


async def await_contained(work: Awaitable[T]) -> T:
    """Awaits a handler's work. What would end the loop becomes a ``RuntimeError``, unless the program is meant to end."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        if is_interruption(error):
            raise
        raise contain(error) from error


def start_contained(work: Awaitable[T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
    """A task that awaits a handler's work. If it is cancelled before it starts, nobody awaits the work, so it is closed."""
    task = loop.create_task(await_contained(work))
    if inspect.iscoroutine(work):
        task.add_done_callback(lambda _: work.close())
    return task


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether calling it returns an awaitable; also for an object with an async ``__call__``."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


# ----------------------------------------------------------------------------------------------------------------------
# Base classes for what is closed at the end of a ``with`` block.


class Closeable:
    """Closed at the end of a ``with`` block."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncCloseable(Closeable):
    """Closed at the end of a ``with`` or an ``async with`` block."""

    __slots__ = ()

    async def close_async(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close_async()


# ----------------------------------------------------------------------------------------------------------------------
# Waits, in the caller's thread, for a handler that runs elsewhere, until the deadline or a cancellation.

GRACE_SECONDS: Final = 0.2
"""How long a handler may take to stop before its caller continues without it."""


def wait_for_handler(
    running: Future[Any], stop: Stop, signal: CallSignal, abandon: Callable[[Future[Any]], None] | None = None
) -> Any:
    """The handler's value; raises if the call ended first, even if the handler is still running.

    ``abandon`` is told about one that did not stop in time.
    """
    changed = threading.Event()
    running.add_done_callback(lambda _: changed.set())
    caller = signal.caller
    forget = None if caller is None else caller.listen(changed.set)
    try:
        remaining = signal.remaining
        changed.wait(None if remaining is None else min(remaining, threading.TIMEOUT_MAX))
    except BaseException:  # Ctrl-C, or what a signal handler of the program raised
        signal.stop()
        _stop_and_wait(running, stop)
        raise
    finally:
        if forget is not None:
            forget()
    if not running.done():
        error = signal.error() or ToolTimeout("the call took longer than its deadline")
        _stop_and_wait(running, stop)
        error.details["abandoned"] = not running.done()
        if abandon is not None and not running.done():
            abandon(running)
        raise error
    signal.refuse_late()
    return running.result()


def _stop_and_wait(running: Future[Any], stop: Stop) -> None:
    """Tells the handler to stop, and gives it a moment."""
    stop()
    ended = threading.Event()
    running.add_done_callback(lambda _: ended.set())
    ended.wait(GRACE_SECONDS)
