"""Arguments that were not given to ``tools.<name>(...)``: they are ``OMIT``, not ``None``, which would be a value."""

from __future__ import annotations

from functools import update_wrapper
from types import FunctionType
from typing import Any, Final, TypeVar, final

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
