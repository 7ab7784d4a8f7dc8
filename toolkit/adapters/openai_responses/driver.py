"""Drivers over OpenAI's client, which the caller makes and keeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.answers.finish_reasons import openai_error_reason
from toolkit.adapters.base_driver import Exchange, Prompt, join_messages, without_none
from toolkit.adapters.openai_responses.decode import decode_response, decode_strict_calls
from toolkit.adapters.openai_responses.encode import encode_choice, encode_messages, encode_tools
from toolkit.adapters.openai_responses.stream import Accumulator
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.openai import decode_strict_result
from toolkit.adapters.token_counting import AsyncCountingDriver, Counting, CountingDriver, select_keys
from toolkit.wire.query import QueryOptions

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


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
        build_request=partial(build_request, model),
        send=create,
        send_streaming=lambda **request: create(**{**request, "stream": True}),
        decode=decode_response,
        accumulator=Accumulator,
        finish=partial(decode_strict_result, decode_strict_calls),
        error_reason=lambda error: openai_error_reason({"code": getattr(error, "code", None)}),
    )


def _counting(client: OpenAI | AsyncOpenAI) -> Counting:
    return Counting(client.responses.input_tokens.count, partial(select_keys, keys=_COUNTED), "input_tokens")


def build_request(model: str, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``responses.create``."""
    request: JsonDict = {"model": model, "input": encode_messages(join_messages(prompt, options))}
    if options.tools:
        request["tools"] = encode_tools(options.tools, options.strict)
        request["tool_choice"] = encode_choice(options.tool_choice)
    request |= without_none(
        instructions=options.system,
        max_output_tokens=options.max_tokens,
        temperature=options.temperature,
        timeout=options.timeout,
    )
    return {**request, **options.extra}
