"""Drivers over OpenAI's client, which the caller makes and keeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.answers import openai_error_reason
from toolkit.adapters.driver import (
    AsyncCountingDriver,
    Counting,
    CountingDriver,
    Exchange,
    Prompt,
    join_messages,
    join_messages_with_system,
    select_keys,
    without_none,
)
from toolkit.adapters.history import encode_history
from toolkit.adapters.openai_responses.codec import (
    PROGRAM,
    decode_response,
    decode_strict_calls,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.openai_responses.stream import Accumulator
from toolkit.adapters.requests import find_program, mark_ends, with_breakpoint
from toolkit.adapters.strict import OPENAI
from toolkit.adapters.strict.adapter import decode_strict_result, encode_output
from toolkit.adapters.values import JsonDict
from toolkit.wire.query import QueryOptions

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


_PROGRAMS: Final = "programmatic_tool_calling"
# What counting tokens takes of a request.
_COUNTED: Final = frozenset(
    {
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation",
        "conversation", "previous_response_id", "timeout", "extra_headers", "extra_query",
    }
)  # fmt: skip


class OpenAIResponsesDriver(CountingDriver):
    """Queries through ``OpenAI``."""

    def __init__(self, client: OpenAI, *, model: str) -> None:
        super().__init__(_exchange(client, model), _counting(client))


class AsyncOpenAIResponsesDriver(AsyncCountingDriver):
    """Queries through ``AsyncOpenAI``."""

    def __init__(self, client: AsyncOpenAI, *, model: str) -> None:
        super().__init__(_exchange(client, model), _counting(client))


def _exchange(client: OpenAI | AsyncOpenAI, model: str) -> Exchange:
    create: Any = client.responses.create
    return Exchange(
        provider_name="openai",
        model=model,
        build_request=partial(build_request, model),
        send=create,
        send_streaming=lambda **request: create(**{**request, "stream": True}),
        decode=decode_response,
        accumulator=Accumulator,
        finish=partial(decode_strict_result, decode_strict_calls),
        error_reason=lambda error: openai_error_reason({"code": getattr(error, "code", None)}),
        output_rules=OPENAI,
        history="input",
    )


def _counting(client: OpenAI | AsyncOpenAI) -> Counting:
    return Counting(client.responses.input_tokens.count, partial(select_keys, keys=_COUNTED), "input_tokens")


def build_request(model: str, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``responses.create``."""
    # `instructions` takes no breakpoint, so a system text that ends in one is a message.
    has_cached_system = "system" in options.cache_after
    joined = join_messages_with_system(prompt, options) if has_cached_system else join_messages(prompt, options)
    items = encode_history(prompt, joined, encode_messages)
    request: JsonDict = {"model": model, "input": mark_ends(items, options.cache_after, _with_breakpoint)}
    if options.tools:
        request["tools"] = _add_server_tools(encode_tools(options.tools, options.strict))
        request["tool_choice"] = encode_choice(options.tool_choice, options.tools)
        request |= without_none(parallel_tool_calls=options.parallel_calls)
    if isinstance(options.reasoning, str):
        request["reasoning"] = {"effort": options.reasoning}
    if options.output is not None:
        request["text"] = {"format": {"type": "json_schema", **encode_output(options.output)}}
    request |= without_none(
        instructions=None if has_cached_system else options.system,
        max_output_tokens=options.max_tokens,
        temperature=options.temperature,
        timeout=options.timeout,
    )
    return {**request, **options.extra}


def _add_server_tools(tools: list[JsonDict]) -> list[JsonDict]:
    """The tools, and unless the caller has them: a search if some are loaded later, and the provider's programs if some may
    be called from there.
    """
    types = [tool.get("type") for tool in tools]
    added: list[JsonDict] = []
    if _PROGRAMS not in types and any(find_program(tool, PROGRAM) for tool in tools):
        added.append({"type": _PROGRAMS})
    if "tool_search" not in types and any(tool.get("defer_loading") for tool in tools):
        added.append({"type": "tool_search"})
    return [*added, *tools]


def _with_breakpoint(item: JsonDict) -> JsonDict:
    if item.get("role") == "assistant":
        return item
    return with_breakpoint(item, "output" if "output" in item else "content", "input_text")
