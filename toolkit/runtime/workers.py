"""Daemon threads for handlers that must not block their caller, and an event loop for async handlers.

The standard executors join their threads when the interpreter exits, so a handler that was abandoned at its deadline
would keep the process alive. These threads are daemons, and are reused while idle.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from toolkit.errors import ToolCancelled

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future
    from queue import SimpleQueue

T = TypeVar("T")
U = TypeVar("U")

Job = Callable[[], None]

MAX_AT_ONCE: Final = 16
"""How many calls of one ``call_all`` run at the same time, and how many idle threads are kept."""


class Workers:
    """Runs functions in daemon threads, with the caller's context variables."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Job | None]] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Starts ``function`` in an idle thread, or a new one."""
        from concurrent.futures import Future
        from queue import SimpleQueue

        future: Future[T] = Future()
        context = contextvars.copy_context()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = context.run(function)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="toolkit-worker", daemon=True).start()
        inbox.put(job)
        return future

    def map(self, function: Callable[[T], U], items: Iterable[T]) -> list[U]:
        """The results of ``function`` for every item, in order, at most 16 at once; ``function`` must not raise."""
        running: list[Future[U]] = []
        for index, item in enumerate(items):
            if index >= MAX_AT_ONCE:
                running[index - MAX_AT_ONCE].result()
            running.append(self.submit(lambda item=item: function(item)))  # type: ignore[misc]
        return [future.result() for future in running]

    def close(self) -> None:
        """Ends the idle threads; busy ones end with their job."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _work(self, inbox: SimpleQueue[Job | None]) -> None:
        while (job := inbox.get()) is not None:
            job()
            del job
            with self._lock:
                if self._closed or len(self._idle) >= MAX_AT_ONCE:
                    return
                self._idle.append(inbox)


_handler_of: contextvars.ContextVar[LoopThread | None] = contextvars.ContextVar("toolkit_handler_of", default=None)


class LoopThread:
    """An event loop in its own thread, started at first use. All async handlers of a sync toolkit run there, so that
    what they keep between calls stays usable, and so that they work when the caller itself runs in a loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()

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
    """Awaits a handler's work. Its SystemExit becomes a RuntimeError: asyncio would let it end the loop and the program."""
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError("the handler raised SystemExit") from error


def start_contained(work: Awaitable[T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
    """A task that awaits a handler's work. If it is cancelled before it starts, nobody awaits the work, so it is closed."""
    task = loop.create_task(await_contained(work))
    if inspect.iscoroutine(work):
        task.add_done_callback(lambda _: work.close())
    return task


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether calling it returns an awaitable; also for an object with an async ``__call__``."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
