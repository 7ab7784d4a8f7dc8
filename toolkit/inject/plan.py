"""Plans what a function needs: a graph of factories, with overrides applied and cycles refused."""

from __future__ import annotations

import inspect
import threading
import typing
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.forks import start_again_in_child
from toolkit.inject.key import Adapt, DependencyKey, Depends, Factory, Lifetime

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
