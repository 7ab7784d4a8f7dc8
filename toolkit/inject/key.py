"""How a handler says what it needs beside its arguments: a key, or a factory, in the annotation of a parameter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, overload

T = TypeVar("T")

Lifetime: TypeAlias = Literal["call", "run"]
"""How long a value is kept: for one call, or until the toolkit is closed."""

Factory: TypeAlias = Callable[..., Any]
"""What makes a value: a function, an async one, or a generator of either kind, whose rest runs when the value's time is
over. Its own parameters may be injected as well."""


class DependencyKey(Generic[T]):
    """Names something handlers need, and says how to make it where nobody overrides it.

    ``ToolkitContext(overrides={key.id: factory})`` puts another factory in its place.

    >>> CLOCK = DependencyKey("clock", lambda: "12:00")
    >>> CLOCK
    DependencyKey('clock')
    """

    __slots__ = ("create", "id", "lifetime")

    @overload
    def __init__(self, id: str, create: Callable[..., AsyncIterator[T]], *, lifetime: Lifetime = ...) -> None: ...
    @overload
    def __init__(self, id: str, create: Callable[..., Iterator[T]], *, lifetime: Lifetime = ...) -> None: ...
    @overload
    def __init__(self, id: str, create: Callable[..., Awaitable[T]], *, lifetime: Lifetime = ...) -> None: ...
    @overload
    def __init__(self, id: str, create: Callable[..., T], *, lifetime: Lifetime = ...) -> None: ...
    def __init__(self, id: str, create: Factory, *, lifetime: Lifetime = "call") -> None:
        self.id: Final = id
        self.create: Final = create
        self.lifetime: Final = lifetime

    def __repr__(self) -> str:
        return f"DependencyKey({self.id!r})"


class Depends:
    """Marks a parameter that is injected: ``db: Annotated[Db, Depends(open_db)]``, with a factory or a key.

    Such a parameter never shows in a schema. A factory given directly is overridden by ``module.qualname`` as its id.
    """

    __slots__ = ("lifetime", "source")

    def __init__(self, source: DependencyKey[Any] | Factory, *, lifetime: Lifetime | None = None) -> None:
        self.source: Final = source
        self.lifetime: Final = lifetime
