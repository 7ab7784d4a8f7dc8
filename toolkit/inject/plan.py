"""What a function needs, found out once: a graph of factories, with overrides put in and cycles refused."""

from __future__ import annotations

import inspect
import threading
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, Literal, TypeAlias

from toolkit.errors import SetupError
from toolkit.inject.key import DependencyKey, Depends, Factory, Lifetime

Kind: TypeAlias = Literal["value", "async", "generator", "async generator"]


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter that takes what is there anyway: the context of the call, or that of the toolkit."""

    lifetime: Lifetime


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One thing to make: by which factory, from what, for how long. Equal only to itself."""

    id: str
    factory: Factory
    kind: Kind
    lifetime: Lifetime
    needs: Needs
    needs_loop: bool
    """Whether it, or something it is made from, has to be awaited."""


Needs: TypeAlias = tuple[tuple[str, Node | Given], ...]
"""Parameters and what they take."""


class Planner:
    """Finds out what functions need; a key or factory gives one node, however many functions need it.

    ``given`` says which annotations stand for contexts.
    """

    def __init__(self, overrides: Mapping[str, Factory], given: Mapping[type, Given]) -> None:
        for id, factory in overrides.items():
            if not callable(factory):
                raise SetupError(
                    f"the override of {id!r} is {type(factory).__name__}; give a function that makes it: lambda: value"
                )
        self.overrides: Final = dict(overrides)
        self._given = given
        self._nodes: dict[object, Node] = {}
        self._functions: dict[Callable[..., Any], Needs] = {}
        self._keys: dict[str, DependencyKey[Any]] = {}
        self._lock = threading.RLock()

    def needs_of(self, function: Callable[..., Any], *, skip: int) -> Needs:
        """The injected parameters of a handler, whose first ``skip`` are given by the road."""
        if _takes_at_most(function, skip):
            return ()
        with self._lock:
            known = self._functions.get(function)
            if known is None:
                known = self._functions[function] = self._needs(function, skip, (), may_leave=True)
            return known

    def node(self, source: DependencyKey[Any] | Factory, lifetime: Lifetime | None = None) -> Node:
        """The node of a key or a factory."""
        with self._lock:
            return self._node(source, lifetime, ())

    def known(self, id: str) -> Node | None:
        """The node of an override, or of a key some function has asked for."""
        with self._lock:
            key = self._keys.get(id)
            if key is not None:
                return self._node(key, None, ())
            # An override whose key nobody has shown yet: how long that one is kept is not known here.
            return self._node(self.overrides[id], None, ()) if id in self.overrides else None

    @property
    def ids(self) -> list[str]:
        """What ``known`` knows."""
        with self._lock:
            return sorted({*self.overrides, *self._keys})

    def _node(
        self, source: DependencyKey[Any] | Factory, lifetime: Lifetime | None, above: tuple[tuple[object, str], ...]
    ) -> Node:
        identity: object = source.id if isinstance(source, DependencyKey) else source
        id = source.id if isinstance(source, DependencyKey) else _qualified(source)
        if any(one == identity for one, _ in above):
            circle = " -> ".join([*(name for _, name in above), id])
            raise SetupError(f"dependencies go round in a circle: {circle}")
        if isinstance(source, DependencyKey):
            self._check_owner(source)
        known = self._nodes.get(identity)
        if known is None:
            factory = self.overrides.get(id) or (source.create if isinstance(source, DependencyKey) else source)
            kept = lifetime or (source.lifetime if isinstance(source, DependencyKey) else "call")
            known = self._made(id, factory, kept, (*above, (identity, id)))
            self._nodes[identity] = known
        if lifetime is not None and known.lifetime != lifetime:
            raise SetupError(f"{id!r} is kept per {known.lifetime} in one place and per {lifetime} in another")
        return known

    def _check_owner(self, key: DependencyKey[Any]) -> None:
        other = self._keys.setdefault(key.id, key)
        if other is not key and other.create is not key.create:
            raise SetupError(
                f"two dependency keys are called {key.id!r}: one made by {_qualified(other.create)}, "
                f"one by {_qualified(key.create)}; rename one"
            )

    def _made(self, id: str, factory: Factory, lifetime: Lifetime, path: tuple[tuple[object, str], ...]) -> Node:
        needs = self._needs(factory, 0, path, may_leave=False)
        for name, need in needs:
            if lifetime == "run" and need.lifetime == "call":
                what = f"{need.id!r}" if isinstance(need, Node) else "the call's context"
                raise SetupError(f"{id!r} is kept for the whole run, but its parameter {name!r} needs {what}, per call")
        kind = _kind(factory)
        waits = kind in ("async", "async generator") or any(
            isinstance(need, Node) and need.needs_loop for _, need in needs
        )
        return Node(id, factory, kind, lifetime, needs, waits)

    def _needs(
        self, function: Callable[..., Any], skip: int, path: tuple[tuple[object, str], ...], *, may_leave: bool
    ) -> Needs:
        found: list[tuple[str, Node | Given]] = []
        for parameter in _parameters(function)[skip:]:
            need = self._need(function, parameter, path)
            if need is not None:
                found.append((parameter.name, need))
            elif parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
                what = "a handler's" if may_leave else "a factory's"
                raise SetupError(
                    f"the parameter {parameter.name!r} of {_qualified(function)} gets no value: {what} further "
                    f"parameters are injected, as in Annotated[Db, Depends(open_db)], or have a default"
                )
        return tuple(found)

    def _need(
        self, function: Callable[..., Any], parameter: inspect.Parameter, path: tuple[tuple[object, str], ...]
    ) -> Node | Given | None:
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


def annotation_of(function: Callable[..., Any], parameter: inspect.Parameter) -> object:
    """The annotation itself, also where it was written as text (``from __future__ import annotations``)."""
    written = parameter.annotation
    if not isinstance(written, str):
        return None if written is parameter.empty else written
    space = getattr(inspect.unwrap(function), "__globals__", None)
    if space is None:
        called = function if isinstance(function, type) else type(function)
        space = vars(inspect.getmodule(called)) if inspect.getmodule(called) else {}
    try:
        return typing.get_type_hints(_Annotated(written), space, include_extras=True)["it"]
    except NameError as error:
        if parameter.default is not parameter.empty and "Depends" not in written:
            return None
        raise SetupError(
            f"the annotation of {parameter.name!r} in {_qualified(function)} cannot be read at run time: {error}; "
            f"import that name outside TYPE_CHECKING, at the level of the module"
        ) from None


class _Annotated:
    """Carries one annotation for ``get_type_hints``."""

    def __init__(self, written: str) -> None:
        self.__annotations__ = {"it": written}


def _takes_at_most(function: Callable[..., Any], count: int) -> bool:
    """Told without a look at its signature, which costs more than the rest of building a toolkit; most handlers are so."""
    if not isinstance(function, FunctionType) or not vars(function).keys().isdisjoint(("__wrapped__", "__signature__")):
        return False
    code = function.__code__
    return code.co_argcount <= count and not code.co_kwonlyargcount


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # some callables of C have none
        return []


def _kind(factory: Factory) -> Kind:
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


def _qualified(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
