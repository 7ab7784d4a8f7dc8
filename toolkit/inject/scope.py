"""The dependencies of one call, or of one run: each is made once, and they are closed in reverse order.

Everything is written once, as coroutines. If nothing must be awaited, ``run_without_loop`` runs them without an event loop,
so that sync handlers and their dependencies stay in one thread.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Set
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from toolkit.errors import SetupError
from toolkit.guard.forks import start_again_in_child
from toolkit.inject.plan import DependencyNode, Given, Needs, Planner

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import AsyncGeneratorType

    from toolkit.inject.key import Lifetime

T = TypeVar("T")

_Wait: TypeAlias = Callable[["Future[None]"], Coroutine[Any, Any, None]]

_making: ContextVar[tuple[DependencyNode, ...]] = ContextVar("toolkit_making", default=())


class DependencyScope:
    """Values by node. The scope of a call refers to the scope of its run, which holds the values that are kept longer."""

    def __init__(self, given: object, run: DependencyScope | None = None) -> None:
        self._run: Final = run or self
        self._given: Final = given
        self._values: dict[DependencyNode, Any] = {}
        self._pending: dict[DependencyNode, Future[None]] = {}
        self._closers: list[tuple[DependencyNode, Callable[..., Any]]] = []
        self._loops: dict[DependencyNode, _MadeInLoop] = {}
        self._lock = threading.Lock()
        self.is_closed = False
        """Whether it was closed: what is made later is not closed by anybody."""
        if run is None:
            start_again_in_child(self)  # others last as long as a call

    def start_again_in_child(self) -> None:
        """What another thread was making, it makes no more."""
        self._pending = {}
        self._lock = threading.Lock()

    def resolve(self, node: DependencyNode) -> Any:
        """The value of a node that needs no loop."""
        if node.needs_loop:
            raise SetupError(
                f"{node.id!r} has an async factory: take it as an injected parameter, or use "
                f"`await ctx.resolve_async(...)` in an async handler"
            )
        return run_without_loop(self._value(node, _block))

    async def resolve_async(self, node: DependencyNode) -> Any:
        """The value of any node."""
        return await self._value(node, _wait)

    def find(self, node: DependencyNode) -> Any:
        """The value of a node if it exists, else None."""
        home = self._at(node.lifetime)
        with home._lock:
            return home._values.get(node)

    def arguments(self, needs: Needs) -> dict[str, Any]:
        """The values of injected parameters that need no loop."""
        return run_without_loop(self._arguments(needs, _block))

    async def arguments_async(self, needs: Needs) -> dict[str, Any]:
        """The values of injected parameters."""
        return await self._arguments(needs, _wait)

    def close(self, error: BaseException | None = None) -> None:
        """Closes what was made; see ``close_async``, which async generators need."""
        run_without_loop(self.close_async(error))

    async def close_async(self, error: BaseException | None = None) -> None:
        """Finishes every generator, the last one first, each with the error that ended the call.

        A generator cannot suppress that error. If the call succeeded and a generator fails here, its error is raised after
        all are closed, because its work (a commit, for example) was not done.
        """
        failed: BaseException | None = None
        self.is_closed = True
        while self._closers:
            node, leave = self._closers.pop()
            try:
                left = leave(type(error) if error else None, error, error.__traceback__ if error else None)
                if inspect.isawaitable(left):
                    await left
            except BaseException as late:
                if late is error:
                    continue
                failed = failed or late
                import logging

                logging.getLogger("toolkit").error(
                    "the dependency %r failed while it was being closed", node.id, exc_info=late
                )
        self._values.clear()
        self._loops.clear()
        if failed is not None and error is None:
            raise failed

    @property
    def needs_loop(self) -> bool:
        """Whether closing must be awaited."""
        return any(node.kind == "async generator" for node, _ in self._closers)

    async def _arguments(self, needs: Needs, wait: _Wait) -> dict[str, Any]:
        return {name: await self._resolve_need(need, wait) for name, need in needs}

    async def _resolve_need(self, need: DependencyNode | Given, wait: _Wait) -> Any:
        return self._at(need.lifetime)._given if isinstance(need, Given) else await self._value(need, wait)

    def _at(self, lifetime: Lifetime) -> DependencyScope:
        return self._run if lifetime == "run" else self

    async def _value(self, node: DependencyNode, wait: _Wait) -> Any:
        """The value; made if it does not exist, waited for if another thread or task is making it."""
        if node in _making.get():
            circle = " -> ".join(one.id for one in (*_making.get(), node))
            raise SetupError(f"circular dependency: {circle}")
        from concurrent.futures import Future

        home = self._at(node.lifetime)
        while True:
            with home._lock:
                if node.needs_loop:
                    home._forget_ended()
                if node in home._values:
                    return home._values[node]
                pending = home._pending.get(node)
                if pending is None:
                    mine = home._pending[node] = Future()
                    mine.set_running_or_notify_cancel()
            if pending is None:
                return await home._make_once(node, mine, wait)
            await wait(pending)

    async def _make_once(self, node: DependencyNode, mine: Future[None], wait: _Wait) -> Any:
        before = _making.set((*_making.get(), node))
        try:
            value = await self._make(node, wait)
            with self._lock:
                self._values[node] = value
            return value
        finally:
            _making.reset(before)
            # Also after a failure: those who waited try again, and get their own error.
            with self._lock:
                del self._pending[node]
            mine.set_result(None)

    def _forget_ended(self) -> None:
        """Forgets what was made in an event loop that has ended, and what was made from it: it cannot be used in another.

        ``asyncio.run`` finishes async generators at its end. Called with the lock.
        """
        ended = {node for node, made in self._loops.items() if made.has_ended}
        for node in [node for node in self._values if ended and _needs_any(node, ended)]:
            del self._values[node]
        for node in ended:
            if self._loops.pop(node).is_finished:
                self._closers = [closer for closer in self._closers if closer[0] is not node]

    async def _make(self, node: DependencyNode, wait: _Wait) -> Any:
        arguments = await self._arguments(node.needs, wait)
        if node.kind == "generator":
            manager = contextmanager(node.factory)(**arguments)
            value = manager.__enter__()
            self._closers.append((node, manager.__exit__))
        elif node.kind == "async generator":
            async_manager = asynccontextmanager(node.factory)(**arguments)
            value = await async_manager.__aenter__()
            self._loops[node] = _MadeInLoop(cast("AsyncGeneratorType[Any]", async_manager.gen))
            self._closers.append((node, async_manager.__aexit__))
        else:
            value = node.factory(**arguments)
            if node.kind == "async":
                value = await value
                self._loops[node] = _MadeInLoop(None)
        return value if node.adapt is None else node.adapt(value)


def _needs_any(node: DependencyNode, others: Set[DependencyNode]) -> bool:
    """Whether a value is one of others, or was made from one of them."""
    return node in others or any(
        isinstance(need, DependencyNode) and _needs_any(need, others) for _, need in node.needs
    )


class _MadeInLoop:
    """The event loop in which a value was made, and the generator that gave it."""

    def __init__(self, generator: AsyncGeneratorType[Any] | None) -> None:
        import asyncio

        self._loop: Final = asyncio.get_running_loop()
        self._generator: Final = generator

    @property
    def is_finished(self) -> bool:
        """Whether the generator is closed already."""
        return self._generator is not None and self._generator.ag_frame is None

    @property
    def has_ended(self) -> bool:
        return self.is_finished or self._loop.is_closed()


class Dependencies(Mapping[str, Any]):
    """The dependencies of a scope by id; each is made at its first use."""

    def __init__(self, scope: DependencyScope, planner: Planner) -> None:
        self._scope = scope
        self._planner = planner

    def __getitem__(self, id: str) -> Any:
        node = self._planner.find(id)
        if node is None:
            raise KeyError(id)
        return self._scope.resolve(node)

    def __iter__(self) -> Iterator[str]:
        return iter(self._planner.ids)

    def __len__(self) -> int:
        return len(self._planner.ids)


def run_without_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that awaits nothing."""
    try:
        work.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    work.close()
    raise SetupError("an async dependency cannot be used here: it needs an event loop")


async def _block(pending: Future[None]) -> None:
    pending.result()


async def _wait(pending: Future[None]) -> None:
    import asyncio

    await asyncio.wrap_future(pending)
