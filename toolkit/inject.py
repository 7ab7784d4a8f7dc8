"""Dependencies of handlers: how they are declared, the plan of what each handler needs (overrides applied, cycles refused),
and the scopes that make and close them.
"""

from __future__ import annotations

import inspect
import threading
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Set
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast, overload

from toolkit.errors import SetupError
from toolkit.forks import start_again_in_child

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import AsyncGeneratorType


# ----------------------------------------------------------------------------------------------------------------------
# How a handler declares a dependency: a key or a factory in the annotation of a parameter.

T = TypeVar("T")

Lifetime: TypeAlias = Literal["call", "run"]
"""How long a value is kept: for one call, or until the toolkit is closed. A value that was awaited is kept no longer than the
event loop in which it was made."""

Factory: TypeAlias = Callable[..., Any]
"""Makes a value: a function, sync or async, or a generator, which continues when the value is no longer needed. Its own
parameters may be injected, too."""

Adapt: TypeAlias = Callable[[Any], Any] | None


class DependencyKey(Generic[T]):
    """Names a dependency, and how to make it.

    ``ToolkitContext(overrides={key.id: factory})`` replaces its factory. ``adapt`` gets every value that a factory made,
    and returns what handlers get.

    >>> CLOCK = DependencyKey("clock", lambda: "12:00")
    >>> CLOCK
    DependencyKey('clock')
    """

    __slots__ = ("adapt", "create", "id", "lifetime")

    @overload
    def __init__(
        self, id: str, create: Callable[..., AsyncIterator[T]], *, lifetime: Lifetime = ..., adapt: Adapt = ...
    ) -> None: ...
    @overload
    def __init__(
        self, id: str, create: Callable[..., Iterator[T]], *, lifetime: Lifetime = ..., adapt: Adapt = ...
    ) -> None: ...
    @overload
    def __init__(
        self, id: str, create: Callable[..., Awaitable[T]], *, lifetime: Lifetime = ..., adapt: Adapt = ...
    ) -> None: ...
    @overload
    def __init__(self, id: str, create: Callable[..., T], *, lifetime: Lifetime = ..., adapt: Adapt = ...) -> None: ...
    def __init__(self, id: str, create: Factory, *, lifetime: Lifetime = "call", adapt: Adapt = None) -> None:
        self.id: Final = id
        self.create: Final = create
        self.lifetime: Final = lifetime
        self.adapt: Final = adapt

    def __repr__(self) -> str:
        return f"DependencyKey({self.id!r})"


class Depends:
    """Marks a parameter that is injected: ``db: Annotated[Db, Depends(open_db)]``, with a factory or a key.

    Such a parameter is never in a schema. The id of a factory that is given directly is ``module.qualname``.
    """

    __slots__ = ("lifetime", "source")

    def __init__(self, source: DependencyKey[Any] | Factory, *, lifetime: Lifetime | None = None) -> None:
        self.source: Final = source
        self.lifetime: Final = lifetime

    def __repr__(self) -> str:
        source = repr(self.source) if isinstance(self.source, DependencyKey) else _name_of(self.source)
        return f"Depends({source}{'' if self.lifetime is None else f', lifetime={self.lifetime!r}'})"


def _name_of(factory: Factory) -> str:
    return getattr(factory, "__qualname__", None) or type(factory).__name__


Kind: TypeAlias = Literal["value", "async", "generator", "async generator"]


class Given(NamedTuple):
    """A parameter that takes a context: of the call, or of the toolkit."""

    lifetime: Lifetime


class DependencyNode:
    """One dependency: its factory, what the factory needs, and how long the value is kept. Equal only to itself.

    ``needs_loop``: whether it, or something it needs, must be awaited.
    """

    __slots__ = ("adapt", "factory", "id", "kind", "lifetime", "needs", "needs_loop")

    def __init__(
        self,
        id: str,
        factory: Factory,
        kind: Kind,
        lifetime: Lifetime,
        needs: Needs,
        needs_loop: bool,
        adapt: Adapt = None,
    ) -> None:
        self.id: Final = id
        self.factory: Final = factory
        self.kind: Final = kind
        self.lifetime: Final = lifetime
        self.needs: Final = needs
        self.needs_loop: Final = needs_loop
        self.adapt: Final = adapt


Needs: TypeAlias = tuple[tuple[str, DependencyNode | Given], ...]
"""Parameters, and what each of them takes."""


class Planner:
    """Finds what functions need. A key or factory has one node, however many functions need it.

    ``given`` maps the annotations that mean contexts.
    """

    def __init__(self, overrides: Mapping[str, Factory], given: Mapping[type, Given]) -> None:
        for id, factory in overrides.items():
            if not callable(factory):
                raise SetupError(
                    f"the override of {id!r} is of type {type(factory).__name__}; pass a function that returns it:"
                    " lambda: value"
                )
        self.overrides: Final = dict(overrides)
        self._given = given
        self._nodes: dict[object, DependencyNode] = {}
        self._functions: dict[Callable[..., Any], Needs] = {}
        self._keys: dict[str, DependencyKey[Any]] = {}
        self._lock = threading.RLock()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """Another thread may be planning while this process is forked."""
        self._lock = threading.RLock()

    def needs_of(self, function: Callable[..., Any], *, skip: int) -> Needs:
        """The injected parameters of a handler, after the first ``skip``."""
        if _takes_at_most(function, skip):
            return ()
        with self._lock:
            known = self._functions.get(function)
            if known is None:
                known = self._functions[function] = self._find_needs(function, skip, (), may_leave=True)
            return known

    def node(self, source: DependencyKey[Any] | Factory, lifetime: Lifetime | None = None) -> DependencyNode:
        """The node of a key or a factory."""
        with self._lock:
            return self._node(source, lifetime, ())

    def find(self, id: str) -> DependencyNode | None:
        """The node of an override, or of a key that some function needs."""
        with self._lock:
            key = self._keys.get(id)
            if key is not None:
                return self._node(key, None, ())
            # No function has used the key of this override yet, so its lifetime is not known.
            return self._node(self.overrides[id], None, ()) if id in self.overrides else None

    @property
    def ids(self) -> list[str]:
        """The ids that ``find`` accepts."""
        with self._lock:
            return sorted({*self.overrides, *self._keys})

    def _node(
        self, source: DependencyKey[Any] | Factory, lifetime: Lifetime | None, above: tuple[tuple[object, str], ...]
    ) -> DependencyNode:
        identity: object = source.id if isinstance(source, DependencyKey) else source
        id = source.id if isinstance(source, DependencyKey) else name_of(source)
        if any(one == identity for one, _ in above):
            circle = " -> ".join([*(name for _, name in above), id])
            raise SetupError(f"circular dependency: {circle}")
        if isinstance(source, DependencyKey):
            self._check_owner(source)
        known = self._nodes.get(identity)
        if known is None:
            factory = self.overrides.get(id) or (source.create if isinstance(source, DependencyKey) else source)
            kept = lifetime or (source.lifetime if isinstance(source, DependencyKey) else "call")
            adapt = source.adapt if isinstance(source, DependencyKey) else None
            known = self._make_node(id, factory, kept, (*above, (identity, id)), adapt)
            self._nodes[identity] = known
        if lifetime is not None and known.lifetime != lifetime:
            raise SetupError(
                f"{id!r} has the lifetime {known.lifetime} in one place and {lifetime} in another; use one of them"
            )
        return known

    def _check_owner(self, key: DependencyKey[Any]) -> None:
        other = self._keys.setdefault(key.id, key)
        if other is not key and other.create is not key.create:
            raise SetupError(
                f"two dependency keys are named {key.id!r}: one is created by {name_of(other.create)}, "
                f"one by {name_of(key.create)}; rename one"
            )

    def _make_node(
        self,
        id: str,
        factory: Factory,
        lifetime: Lifetime,
        path: tuple[tuple[object, str], ...],
        adapt: Adapt,
    ) -> DependencyNode:
        needs = self._find_needs(factory, 0, path, may_leave=False)
        for name, need in needs:
            if lifetime == "run" and need.lifetime == "call":
                what = f"{need.id!r}" if isinstance(need, DependencyNode) else "the call's context"
                raise SetupError(
                    f"{id!r} is kept for the whole run, but its parameter {name!r} needs {what}, which is kept per call"
                )
        kind = _kind_of(factory)
        waits = kind in ("async", "async generator") or any(
            isinstance(need, DependencyNode) and need.needs_loop for _, need in needs
        )
        return DependencyNode(id, factory, kind, lifetime, needs, waits, adapt)

    def _find_needs(
        self, function: Callable[..., Any], skip: int, path: tuple[tuple[object, str], ...], *, may_leave: bool
    ) -> Needs:
        found: list[tuple[str, DependencyNode | Given]] = []
        for parameter in _parameters(function)[skip:]:
            need = self._find_need(function, parameter, path)
            if need is not None:
                found.append((parameter.name, need))
            elif parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
                what = "a handler's" if may_leave else "a factory's"
                raise SetupError(
                    f"the parameter {parameter.name!r} of {name_of(function)} has no value: {what} other "
                    f"parameters must be injected, as in Annotated[Db, Depends(open_db)], or have a default"
                )
        return tuple(found)

    def _find_need(
        self, function: Callable[..., Any], parameter: inspect.Parameter, path: tuple[tuple[object, str], ...]
    ) -> DependencyNode | Given | None:
        annotation = annotation_of(function, parameter)
        mark = depends_of(annotation)
        if mark is not None:
            return self._node(mark.source, mark.lifetime, path)
        kind = typing.get_origin(annotation) or annotation
        return self._given.get(kind) if isinstance(kind, type) else None


_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def depends_of(annotation: object) -> Depends | None:
    """The mark in ``Annotated[..., Depends(...)]``, if there is one."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return None
    marks = [mark for mark in typing.get_args(annotation)[1:] if isinstance(mark, Depends)]
    return marks[0] if marks else None


def annotation_of(
    function: Callable[..., Any], parameter: inspect.Parameter, names: Mapping[str, object] | None = None
) -> object:
    """The annotation, also if it is written as text (``from __future__ import annotations``).

    ``names`` are those that the globals of the function do not have.
    """
    written = parameter.annotation
    if not isinstance(written, str) and names is None:
        return None if written is parameter.empty else written
    space = getattr(inspect.unwrap(function), "__globals__", None)
    if space is None:
        called = function if isinstance(function, type) else type(function)
        space = vars(inspect.getmodule(called)) if inspect.getmodule(called) else {}
    try:
        return typing.get_type_hints(_Annotated(written), space, dict(names or {}), include_extras=True)["it"]
    except NameError as error:
        if parameter.default is not parameter.empty and "Depends" not in str(written):
            return None
        what = repr(written) if isinstance(written, str) else str(written)
        raise SetupError(
            f"the annotation {what} of {parameter.name!r} in {name_of(function)} cannot be read at run time: {error}; "
            f"import that name at module level, outside TYPE_CHECKING, or define it before the tool in the same function"
        ) from None


class _Annotated:
    """Carries one annotation for ``get_type_hints``."""

    def __init__(self, written: object) -> None:
        self.__annotations__ = {"it": written}


def _takes_at_most(function: Callable[..., Any], count: int) -> bool:
    """Whether it needs no injection, without ``inspect.signature``, which would take most of the time to build a toolkit."""
    if not isinstance(function, FunctionType) or not vars(function).keys().isdisjoint(("__wrapped__", "__signature__")):
        return False
    code = function.__code__
    return code.co_argcount <= count and not code.co_kwonlyargcount


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # some C functions have no signature
        return []


def _kind_of(factory: Factory) -> Kind:
    called = factory if inspect.isroutine(factory) else getattr(factory, "func", None) or type(factory).__call__
    if isinstance(factory, type):
        return "value"
    if inspect.isasyncgenfunction(factory) or inspect.isasyncgenfunction(called):
        return "async generator"
    if inspect.isgeneratorfunction(factory) or inspect.isgeneratorfunction(called):
        return "generator"
    if inspect.iscoroutinefunction(factory) or inspect.iscoroutinefunction(called):
        return "async"
    return "value"


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in messages: ``module.name``."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"


# ----------------------------------------------------------------------------------------------------------------------
# The dependencies of one call, or of one run: each is made once, and they are closed in reverse order.
#
# Everything is written once, as coroutines. If nothing must be awaited, ``run_without_loop`` runs them without an event loop,
# so that sync handlers and their dependencies stay in one thread.

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
