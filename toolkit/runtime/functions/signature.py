"""A typed function as a tool sees it: which parameters a model fills in, which the road does, and what comes back."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from inspect import Parameter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union

from pydantic.fields import FieldInfo

from toolkit.errors import SetupError
from toolkit.inject.plan import annotation_of, depends_of
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.context.toolkit_context import ToolkitContext

_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """Parameters with their annotations resolved, sorted by who gives them their values."""

    wire: tuple[Parameter, ...]
    """What a model fills in; with ``input`` the one parameter that takes it all."""
    context: tuple[Parameter, ...]
    """What takes the ``ToolContext`` of the call."""
    injected: tuple[Parameter, ...]
    """What is made for the call: ``Depends``, and the ``ToolkitContext``."""
    positional_only: tuple[str, ...]
    returns: Any
    """What the function gives, awaited where it has to be; ``Any`` where it does not say."""


def read_signature(function: Callable[..., Any], *, whole_input: bool = False) -> ToolSignature:
    """The signature of a function that is to be a tool; whatever could not be served is refused."""
    plain = plain_function(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise SetupError(f"{qualified(function)} is a generator: a tool gives its result at once")
    resolved = [_resolved(plain, parameter) for parameter in inspect.signature(function).parameters.values()]
    context = tuple(parameter for parameter in resolved if _is_a(parameter, ToolContext))
    injected = tuple(parameter for parameter in resolved if _is_injected(parameter))
    wire = tuple(parameter for parameter in resolved if parameter not in context and parameter not in injected)
    if whole_input and len(wire) != 1:
        names = ", ".join(repr(parameter.name) for parameter in wire) or "none"
        raise SetupError(
            f"{qualified(function)} takes its arguments as one object: one parameter for the input, not {names}; "
            f"further ones take the ToolContext or are injected"
        )
    if not whole_input:
        for parameter in wire:
            _check(function, parameter)
    positional = tuple(parameter.name for parameter in resolved if parameter.kind is Parameter.POSITIONAL_ONLY)
    return ToolSignature(wire, context, injected, positional, _returned(plain))


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is behind partials and objects that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def qualified(function: Callable[..., Any]) -> str:
    """How a function is called in messages: ``module.name``."""
    plain = plain_function(function)
    return f"{getattr(plain, '__module__', '?')}.{getattr(plain, '__qualname__', type(plain).__name__)}"


def _resolved(function: Callable[..., Any], parameter: Parameter) -> Parameter:
    # Without its default, so that a name that cannot be found is told and not passed over.
    annotation = annotation_of(function, parameter.replace(default=Parameter.empty))
    written = parameter.annotation is not Parameter.empty
    return parameter.replace(annotation=annotation if written else Parameter.empty)


def _is_a(parameter: Parameter, kind: type) -> bool:
    """Whether it takes a context: also one that a plain call may leave out, ``ctx: ToolContext | None = None``."""
    annotation = parameter.annotation
    if typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (Union, UnionType):
        others = [part for part in typing.get_args(annotation) if part is not NoneType]
        annotation = others[0] if len(others) == 1 else annotation
    origin = typing.get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, kind)


def _is_injected(parameter: Parameter) -> bool:
    return depends_of(parameter.annotation) is not None or _is_a(parameter, ToolkitContext)


def _check(function: Callable[..., Any], parameter: Parameter) -> None:
    what = f"the parameter {parameter.name!r} of {qualified(function)}"
    if parameter.kind in _VARIADIC:
        raise SetupError(f"{what} takes any number of arguments; a tool names each of them")
    if parameter.annotation is Parameter.empty:
        hint = "; a method becomes a tool with define_tool(instance.method)" if parameter.name == "self" else ""
        raise SetupError(f"{what} has no type: a model must be told what to send{hint}")
    if isinstance(parameter.default, FieldInfo):
        raise SetupError(
            f"{what} has a Field as its default, which a plain call would get; write Annotated[..., Field(...)] = default"
        )


def _returned(function: Callable[..., Any]) -> Any:
    written = inspect.signature(function).return_annotation
    if written is Parameter.empty:
        return Any
    returns = annotation_of(function, Parameter("returned", Parameter.KEYWORD_ONLY, annotation=written))
    if typing.get_origin(returns) in (Awaitable, Coroutine):
        returns = typing.get_args(returns)[-1]
    return NoneType if returns is None else returns
