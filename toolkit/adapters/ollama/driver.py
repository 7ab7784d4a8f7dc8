"""Drivers over ``ollama.Client``, which the caller makes and keeps."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.driver import (
    AsyncBaseDriver,
    BaseDriver,
    Exchange,
    Prompt,
    join_messages_with_system,
    without_none,
)
from toolkit.adapters.history import encode_history
from toolkit.adapters.ollama.codec import decode_response, encode_choice, encode_messages, encode_tools
from toolkit.adapters.ollama.stream import Accumulator
from toolkit.adapters.values import JsonDict
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import QueryOptions, ReasoningEffort

if TYPE_CHECKING:
    from ollama import AsyncClient, Client

_THINK: Final[dict[ReasoningEffort, bool | str]] = {
    "none": False, "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}  # fmt: skip


class OllamaDriver(BaseDriver):
    """Queries through ``ollama.Client``."""

    def __init__(self, client: Client, *, model: str) -> None:
        super().__init__(_exchange(client.chat, model, closing))


class AsyncOllamaDriver(AsyncBaseDriver):
    """Queries through ``ollama.AsyncClient``."""

    def __init__(self, client: AsyncClient, *, model: str) -> None:
        super().__init__(_exchange(client.chat, model, aclosing))


def _exchange(chat: Any, model: str, manage: Any) -> Exchange:
    return Exchange(
        provider_name="ollama",
        model=model,
        build_request=partial(build_request, model),
        send=chat,
        send_streaming=partial(chat, stream=True),
        decode=decode_response,
        accumulator=Accumulator,
        manage=manage,
    )


def build_request(model: str, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of the client's ``chat``."""
    if options.timeout is not None:
        raise ValueError("the Ollama client takes its timeout when it is created; use ollama.Client(timeout=...)")
    messages = encode_history(prompt, join_messages_with_system(prompt, options), _encode_messages)
    request: JsonDict = {"model": model, "messages": messages}
    encode_choice(options.tool_choice)  # raises for a choice that Ollama cannot express
    if options.tools and options.tool_choice != "none":
        request["tools"] = encode_tools(options.tools)
    settings = without_none(num_predict=options.max_tokens, temperature=options.temperature)
    if settings:
        request["options"] = settings
    request |= without_none(
        think=_THINK[options.reasoning] if isinstance(options.reasoning, str) else None,
        format=None if options.output is None else options.output.schema,
    )
    return {**request, **options.extra}


def _encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The messages with images as bytes: the client takes a text for a path first, and would send that file."""
    encoded = encode_messages(messages)
    for message in encoded:
        if message.get("images"):
            message["images"] = [base64.b64decode(image, validate=True) for image in message["images"]]
    return encoded
