"""What each tool takes and returns, as a table of types. Generated packages hold one for each toolkit class.

Only the mypy plugin ``toolkit.mypy`` reads it: with the plugin, the attribute `invoke` of a toolkit is an `Invoke` of its
table, so mypy looks up one tool instead of comparing a call with an overload for every tool. Nothing here runs.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

ArgsT = TypeVar("ArgsT")
AnswerT = TypeVar("AnswerT")
TableT_co = TypeVar("TableT_co", covariant=True)


class Signature(Generic[ArgsT, AnswerT]):
    """What one tool takes, and its output; or what a call by a name that is known only at run time takes and returns."""


class Invoke(Protocol[TableT_co]):
    """`Toolkit.invoke` with the plugin, which replaces this signature at each call."""

    def __call__(self, name: str, args: Any) -> Any: ...


class InvokeAsync(Protocol[TableT_co]):
    """`AsyncToolkit.invoke` with the plugin, which replaces this signature at each call."""

    async def __call__(self, name: str, args: Any) -> Any: ...
