"""Makes handlers from functions: they take validated arguments and a context, and call the function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from inspect import Parameter, Signature
from typing import Any

from pydantic import BaseModel, ValidationError

from toolkit.inject.plan import depends_of
from toolkit.runtime import path as steps
from toolkit.runtime.catalog.handler_parts import HandlerParts
from toolkit.runtime.catalog.tool import Tool
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.define import FunctionTool
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.workers import is_async


def make_handler(tool: FunctionTool[..., Any]) -> HandlerParts[..., Any]:
    """A handler that takes arguments as the tool's own reader validated them."""
    return _make_handler(tool, tool.arguments.by_parameter, _identity, tool.text)


def make_generated_handler(tool: FunctionTool[..., Any], *, own_output: bool) -> HandlerParts[..., Any]:
    """A handler that takes a generated input model, and returns what the generated output model is made from; with
    ``own_output``, what the function returned.

    The generated models were made from the function's schemas, so nothing is lost. If the function has changed since, its
    own reader reports what it wants now.
    """
    text = tool.text

    # Schemas and readers are made at the first call, so that a toolkit of many functions is built quickly.
    def by_parameter(args: BaseModel) -> dict[str, Any]:
        reader = tool.arguments.reader
        sent = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
        try:
            return tool.arguments.by_parameter(reader.from_wire(sent))
        except ValidationError as error:
            raise steps.invalid_arguments(Tool(tool.info, reader, reader), error) from None

    def convert(value: Any) -> Any:
        return tool.output.as_generated(value)

    def render(content: Any) -> str:
        assert text is not None
        return text(tool.output.from_generated(content))

    if own_output:
        return _make_handler(tool, by_parameter, _identity, text)
    return _make_handler(tool, by_parameter, convert, None if text is None else render)


def _make_handler(
    tool: FunctionTool[..., Any],
    by_parameter: Callable[[BaseModel], dict[str, Any]],
    convert: Callable[[Any], Any],
    text: Callable[[Any], str] | None,
) -> HandlerParts[..., Any]:
    function, signature = tool.function, tool.signature
    contexts = [parameter.name for parameter in signature.context]
    positional = signature.positional_only

    def split_arguments(args: BaseModel, ctx: ToolContext, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        values = {**by_parameter(args), **given}
        for name in contexts:
            values[name] = ctx
        return [values.pop(name) for name in positional], values

    async def run_async(args: BaseModel, ctx: ToolContext, /, **given: Any) -> Any:
        first, values = split_arguments(args, ctx, given)
        return convert(await function(*first, **values))

    def run(args: BaseModel, ctx: ToolContext, /, **given: Any) -> Any:
        first, values = split_arguments(args, ctx, given)
        value = function(*first, **values)
        return _convert_later(value, convert) if inspect.isawaitable(value) else convert(value)

    handler: Any = run_async if is_async(function) else run
    # The planner reads from the signature what is to be injected.
    given = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in ("_args", "_ctx")]
    handler.__signature__ = Signature([*given, *map(_as_injected, signature.injected)])
    handler.__qualname__, handler.__module__ = tool.owner.rpartition(".")[2], tool.owner.rpartition(".")[0]
    return HandlerParts(handler, text=text, preview=tool.preview)


def _as_injected(parameter: Parameter) -> Parameter:
    annotation = ToolkitContext if depends_of(parameter.annotation) is None else parameter.annotation
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=annotation)


async def _convert_later(value: Awaitable[Any], convert: Callable[[Any], Any]) -> Any:
    """For a plain function around an async one, such as a decorator."""
    return convert(await value)


def _identity(value: Any) -> Any:
    return value
