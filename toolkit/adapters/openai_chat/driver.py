"""Drivers over OpenAI's client, which the caller makes and keeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.adapters.base_driver import (
    AsyncBaseDriver,
    BaseDriver,
    Exchange,
    Prompt,
    join_messages_with_system,
    without_none,
)
from toolkit.adapters.openai_chat.decode import decode_response, decode_strict_calls
from toolkit.adapters.openai_chat.encode import encode_choice, encode_messages, encode_tools
from toolkit.adapters.openai_chat.stream import Accumulator
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.adapter import decode_strict_result
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
        build_request=partial(build_request, model),
        send=create,
        send_streaming=lambda **request: create(
            **{"stream_options": {"include_usage": True}, **request, "stream": True}
        ),
        decode=decode_response,
        accumulator=Accumulator,
        finish=partial(decode_strict_result, decode_strict_calls),
    )


def build_request(model: str, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``chat.completions.create``."""
    request: JsonDict = {"model": model, "messages": encode_messages(join_messages_with_system(prompt, options))}
    if options.tools:
        request["tools"] = encode_tools(options.tools, options.strict)
        request["tool_choice"] = encode_choice(options.tool_choice)
    request |= without_none(
        max_completion_tokens=options.max_tokens, temperature=options.temperature, timeout=options.timeout
    )
    return {**request, **options.extra}
