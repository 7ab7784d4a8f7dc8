"""How a handler declares a dependency: a key or a factory in the annotation of a parameter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, overload

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
