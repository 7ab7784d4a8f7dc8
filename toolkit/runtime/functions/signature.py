"""Reads the signature of a function: which parameters a model fills in, which the call path does, and what it returns."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from inspect import Parameter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union

from pydantic.fields import FieldInfo

from toolkit.errors import SetupError
from toolkit.inject.plan import annotation_of, depends_of, name_of
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.tool_context import ToolContext

_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """Parameters with resolved annotations, grouped by who fills them in."""

    wire: tuple[Parameter, ...]
    """Filled in by the model; with ``input``, the one parameter that takes everything."""
    context: tuple[Parameter, ...]
    """Take the ``ToolContext`` of the call."""
    injected: tuple[Parameter, ...]
    """Injected: ``Depends``, and the ``ToolkitContext``."""
    positional_only: tuple[str, ...]
    returns: Any
    """The return type, of an async function once awaited; ``Any`` if there is no annotation."""


def read_signature(
    function: Callable[..., Any], *, whole_input: bool = False, local_names: Mapping[str, object] | None = None
) -> FunctionSignature:
    """Reads the signature of a function that becomes a tool; refuses parameters that cannot be filled in.

    ``local_names`` are names in annotations that the globals of the function do not have.
    """
    plain = plain_function(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise SetupError(f"{qualified_name(function)} is a generator: a tool must return its result at once")
    local = local_names or {}
    resolved = [_resolve_annotation(plain, one, local) for one in inspect.signature(function).parameters.values()]
    context = tuple(parameter for parameter in resolved if _is_a(parameter, ToolContext))
    injected = tuple(parameter for parameter in resolved if _is_injected(parameter))
    wire = tuple(parameter for parameter in resolved if parameter not in context and parameter not in injected)
    if whole_input and len(wire) != 1:
        names = ", ".join(repr(parameter.name) for parameter in wire) or "none"
        raise SetupError(
            f"{qualified_name(function)} takes its arguments as one object, so it needs one parameter for the input, "
            f"not {names}; others must take the ToolContext or be injected"
        )
    if not whole_input:
        for parameter in wire:
            _check_parameter(function, parameter)
    positional = tuple(parameter.name for parameter in resolved if parameter.kind is Parameter.POSITIONAL_ONLY)
    return FunctionSignature(wire, context, injected, positional, _return_type(plain, local))


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def qualified_name(function: Callable[..., Any]) -> str:
    """The name of a function in messages: ``module.name``."""
    return name_of(plain_function(function))


def _resolve_annotation(function: Callable[..., Any], parameter: Parameter, names: Mapping[str, object]) -> Parameter:
    if parameter.annotation is Parameter.empty:
        return parameter
    # Without its default, so that an unknown name is an error and not ignored.
    return parameter.replace(annotation=annotation_of(function, parameter.replace(default=Parameter.empty), names))


def _is_a(parameter: Parameter, kind: type) -> bool:
    """Whether it takes a context; also an optional one, ``ctx: ToolContext | None = None``."""
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


def _check_parameter(function: Callable[..., Any], parameter: Parameter) -> None:
    what = f"the parameter {parameter.name!r} of {qualified_name(function)}"
    if parameter.kind in _VARIADIC:
        raise SetupError(f"{what} takes any number of arguments; a tool must name each of them")
    if parameter.annotation is Parameter.empty:
        hint = "; a method becomes a tool with define_tool(instance.method)" if parameter.name == "self" else ""
        raise SetupError(f"{what} has no type annotation: a model must know what to send{hint}")
    if isinstance(parameter.default, FieldInfo):
        raise SetupError(
            f"{what} has a Field as its default, which a plain call would receive; write Annotated[..., Field(...)] = default"
        )


def _return_type(function: Callable[..., Any], names: Mapping[str, object]) -> Any:
    written = inspect.signature(function).return_annotation
    if written is Parameter.empty:
        return Any
    returns = annotation_of(function, Parameter("returned", Parameter.KEYWORD_ONLY, annotation=written), names)
    if typing.get_origin(returns) in (Awaitable, Coroutine):
        returns = typing.get_args(returns)[-1]
    return NoneType if returns is None else returns
