"""Strict mode in OpenAI's two adapters: the schema a tool is sent with, and calls in the form of the tool's own schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.adapter import strict_receipt
from toolkit.adapters.tool_definitions import wants_strict
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.query import QueryOptions, QueryResult


def parameters_to_send(definition: ToolDefinition, strict: bool | None, provider: str) -> tuple[JsonDict, bool | None]:
    """The schema to send, and the value of ``strict`` to send with it; None if strict mode was not asked for."""
    receipt = strict_receipt(definition, strict, provider)
    if receipt is None:
        return definition.parameters, wants_strict(definition, strict)
    return receipt.schema, receipt.is_strict


def decode_strict_result(
    decode_strict_calls: Callable[[Sequence[ToolCall], Iterable[AnyDefinition], bool | None], list[ToolCall]],
    result: QueryResult,
    options: QueryOptions,
) -> QueryResult:
    """The result with its calls in the form of the tools' own schemas."""
    if not result.tool_calls:
        return result
    return replace(result, tool_calls=decode_strict_calls(result.tool_calls, options.tools, options.strict))
