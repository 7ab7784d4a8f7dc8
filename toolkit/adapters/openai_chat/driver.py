"""Drivers over OpenAI's client, which the caller makes and keeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.adapters.answers import openai_error_reason
from toolkit.adapters.driver import (
    AsyncBaseDriver,
    BaseDriver,
    Exchange,
    Prompt,
    join_messages_with_system,
    without_none,
)
from toolkit.adapters.history import encode_history
from toolkit.adapters.openai_chat.codec import (
    decode_response,
    decode_strict_calls,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.openai_chat.stream import Accumulator
from toolkit.adapters.requests import mark_ends, with_breakpoint
from toolkit.adapters.strict import OPENAI
from toolkit.adapters.strict.adapter import decode_strict_result, encode_output
from toolkit.adapters.values import JsonDict
from toolkit.wire.query import QueryOptions

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


class OpenAIChatDriver(BaseDriver):
    """Queries through ``OpenAI``."""

    def __init__(self, client: OpenAI, *, model: str) -> None:
        super().__init__(_exchange(client, model))


class AsyncOpenAIChatDriver(AsyncBaseDriver):
    """Queries through ``AsyncOpenAI``."""

    def __init__(self, client: AsyncOpenAI, *, model: str) -> None:
        super().__init__(_exchange(client, model))


def _exchange(client: OpenAI | AsyncOpenAI, model: str) -> Exchange:
    create: Any = client.chat.completions.create
    return Exchange(
        provider_name="openai",
        model=model,
        build_request=partial(build_request, model),
        send=create,
        send_streaming=lambda **request: create(
            **{"stream_options": {"include_usage": True}, **request, "stream": True}
        ),
        decode=decode_response,
        accumulator=Accumulator,
        finish=partial(decode_strict_result, decode_strict_calls),
        error_reason=lambda error: openai_error_reason({"code": getattr(error, "code", None)}),
        output_rules=OPENAI,
    )


def build_request(model: str, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``chat.completions.create``."""
    messages = encode_history(prompt, join_messages_with_system(prompt, options), encode_messages)
    mark = partial(with_breakpoint, key="content", text_type="text")
    request: JsonDict = {"model": model, "messages": mark_ends(messages, options.cache_after, mark)}
    if options.tools:
        request["tools"] = encode_tools(options.tools, options.strict)
        request["tool_choice"] = encode_choice(options.tool_choice, options.tools)
        request |= without_none(parallel_tool_calls=options.parallel_calls)
    request |= without_none(
        max_completion_tokens=options.max_tokens,
        temperature=options.temperature,
        timeout=options.timeout,
        reasoning_effort=options.reasoning if isinstance(options.reasoning, str) else None,
    )
    if options.output is not None:
        request["response_format"] = {"type": "json_schema", "json_schema": encode_output(options.output)}
    return {**request, **options.extra}
