"""What generated toolkit classes are declared with: a table of what each tool takes and returns, ``OMIT``, and the names that
checkers show when a call fits no tool.

Only the mypy plugin ``toolkit.mypy`` reads the table: with the plugin, the attribute `invoke` of a toolkit is an `Invoke` of
its table, so mypy looks up one tool instead of comparing a call with an overload for every tool.
"""

from __future__ import annotations

from functools import update_wrapper
from types import FunctionType
from typing import Any, Final, Generic, Never, Protocol, TypeAlias, TypeVar, final

from toolkit.wire.call import JsonObject

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


# ----------------------------------------------------------------------------------------------------------------------
# Arguments that were not given to ``tools.<name>(...)``: they are ``OMIT``, not ``None``, which would be a value.

ToolsT = TypeVar("ToolsT")

_SHOWN: Final = 5
"""How many tools a ``repr`` names."""


@final
class Omit:
    """The type of ``OMIT``; an argument with this value is not sent."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OMIT"

    def __bool__(self) -> bool:
        return False


OMIT: Final = Omit()


def send_only_given(tools: type[ToolsT]) -> type[ToolsT]:
    """Makes the methods of a generated ``Tools`` class send only the arguments that a caller gave.

    The signatures show the defaults of the spec to people and type checkers. When a method is called, every argument that was
    not given is ``OMIT`` instead, so defaults are applied in one place: by the tool's input model.
    Its ``model_fields_set`` then says what was given, and packs send only that.
    """
    initialize: Any = tools.__init__

    def initialize_first(self: ToolsT, call: object) -> None:
        # At the first use, because it would make importing a package of many tools slower.
        _omit_defaults(tools)
        setattr(tools, "__init__", initialize)  # noqa: B010
        initialize(self, call)

    setattr(tools, "__init__", initialize_first)  # noqa: B010
    setattr(tools, "__repr__", _describe_tools)  # noqa: B010
    return tools


def _describe_tools(tools: object) -> str:
    names = [name for name in vars(type(tools)) if not name.startswith("_")]
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"<{type(tools).__name__}: {len(names)} tools as methods: {shown}>"


def _omit_defaults(tools: type) -> None:
    for name, method in list(vars(tools).items()):
        if isinstance(method, FunctionType) and method.__kwdefaults__:
            sending = FunctionType(method.__code__, method.__globals__)
            sending.__kwdefaults__ = dict.fromkeys(method.__kwdefaults__, OMIT)
            # `inspect.signature` and `help` show the method as it was written.
            setattr(tools, name, update_wrapper(sending, method))


# ----------------------------------------------------------------------------------------------------------------------
# What checkers name when a call of ``invoke`` fits no tool. Nothing is ever one of these types; no code runs.

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
