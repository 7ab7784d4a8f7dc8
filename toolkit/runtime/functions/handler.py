"""Functions as handlers of the road: validated arguments and a context in, what the function gives out."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from inspect import Parameter, Signature
from typing import Any

from pydantic import BaseModel, ValidationError

from toolkit.inject.plan import depends_of
from toolkit.runtime.call import steps
from toolkit.runtime.catalog.handler_parts import HandlerParts
from toolkit.runtime.catalog.tool import Tool
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.define import FunctionTool
from toolkit.runtime.workers import is_async


def handler_of(tool: FunctionTool[..., Any]) -> HandlerParts[..., Any]:
    """Runs the function with arguments that were read by the tool's own reader."""
    return _handler(tool, tool.arguments.named, _itself, tool.text)


def generated_handler_of(tool: FunctionTool[..., Any]) -> HandlerParts[..., Any]:
    """Runs the function with arguments of a generated input model; what it gives becomes the generated output model.

    The generated models were made from the function's schemas, so that nothing is lost on the way. Where the function has
    changed since, its own reader says what it wants now.
    """
    text = tool.text

    # Schemas and readers are made at the first call: a toolkit of many functions need not make them all to be built.
    def named(args: BaseModel) -> dict[str, Any]:
        reader = tool.arguments.reader
        sent = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
        try:
            return tool.arguments.named(reader.from_wire(sent))
        except ValidationError as error:
            raise steps.invalid_arguments(Tool(tool.info, reader, reader), error) from None

    def finished(value: Any) -> Any:
        return tool.output.as_generated(value)

    def told(content: Any) -> str:
        assert text is not None
        return text(tool.output.from_generated(content))

    return _handler(tool, named, finished, None if text is None else told)


def _handler(
    tool: FunctionTool[..., Any],
    named: Callable[[BaseModel], dict[str, Any]],
    finished: Callable[[Any], Any],
    text: Callable[[Any], str] | None,
) -> HandlerParts[..., Any]:
    function, signature = tool.function, tool.signature
    contexts = [parameter.name for parameter in signature.context]
    positional = signature.positional_only

    def bound(args: BaseModel, ctx: ToolContext, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        values = {**named(args), **given}
        for name in contexts:
            values[name] = ctx
        return [values.pop(name) for name in positional], values

    async def run_async(args: BaseModel, ctx: ToolContext, /, **given: Any) -> Any:
        first, values = bound(args, ctx, given)
        return finished(await function(*first, **values))

    def run(args: BaseModel, ctx: ToolContext, /, **given: Any) -> Any:
        first, values = bound(args, ctx, given)
        value = function(*first, **values)
        return _finished_later(value, finished) if inspect.isawaitable(value) else finished(value)

    handler: Any = run_async if is_async(function) else run
    # What is to be injected, as the planner reads it.
    road = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in ("_from_the_wire", "_of_the_call")]
    handler.__signature__ = Signature([*road, *map(_as_injected, signature.injected)])
    handler.__qualname__, handler.__module__ = tool.owner.rpartition(".")[2], tool.owner.rpartition(".")[0]
    return HandlerParts(handler, text=text, preview=tool.preview)


def _as_injected(parameter: Parameter) -> Parameter:
    annotation = ToolkitContext if depends_of(parameter.annotation) is None else parameter.annotation
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=annotation)


async def _finished_later(value: Awaitable[Any], finished: Callable[[Any], Any]) -> Any:
    """For a plain function around an async one: a decorator, say."""
    return finished(await value)


def _itself(value: Any) -> Any:
    return value
