"""What checkers name when a call of ``invoke`` fits no tool. Nothing is ever one of these types; no code runs."""

from __future__ import annotations

from typing import Protocol, TypeAlias, TypeVar

from toolkit.wire.json_types import JsonObject

TextT_co = TypeVar("TextT_co", bound=str, covariant=True)


class TheNamedTool(str):
    """Stands for the tool whose name is the first argument of ``invoke``."""


class ArgsOf(Protocol[TextT_co]):
    """The type in the first overload of ``invoke``, which no value has: the ``__repr__`` of a value gives a plain ``str``.

    Mypy compares a call that fits no overload with each of them again, without type arguments, and reports the first that
    looks similar instead of printing all. Everything looks similar to this one.
    """

    def __repr__(self) -> TextT_co: ...


JsonObjectForUnknownName: TypeAlias = JsonObject
"""How the overload for names that are known only at run time is shown by pyright, which blames it for an unknown name."""
