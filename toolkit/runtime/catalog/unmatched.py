"""What checkers name when a call of ``invoke`` fits no tool. Nothing is ever one of these types; no code runs."""

from __future__ import annotations

from typing import Never, Protocol, TypeAlias, TypeVar

from toolkit.wire.json_types import JsonObject

TextT_co = TypeVar("TextT_co", bound=str, covariant=True)


class ToolThatTakesTheseArgs(Protocol[TextT_co]):
    """The name in the first overload of ``invoke``. No value has this type: the ``__repr__`` of a value returns.

    Mypy compares a call that fits no overload with each of them again, without type arguments, and reports the first that
    looks similar instead of printing all. Everything looks similar to this one.
    """

    def __repr__(self) -> TextT_co: ...


class ArgsOfTheNamedTool(Protocol[TextT_co]):
    """The arguments in the first overload, likewise. Because of them, a name of type ``Any`` does not fit it either."""

    def __repr__(self) -> TextT_co: ...


# Mypy does not explain why a value is no protocol with a `Never` in it, which is what makes its message one line.
NameOfNoTool: TypeAlias = ToolThatTakesTheseArgs[Never]
ArgsOfNoTool: TypeAlias = ArgsOfTheNamedTool[Never]

JsonObjectForUnknownName: TypeAlias = JsonObject
"""How the overload for names that are known only at run time is shown by pyright, which blames it for an unknown name."""
