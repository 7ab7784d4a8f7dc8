"""Drivers over ``genai.Client``, which the caller makes and keeps; Vertex has the same client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from inspect import isasyncgen
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.driver import (
    AsyncCountingDriver,
    Counting,
    CountingDriver,
    Exchange,
    Prompt,
    join_messages_with_system,
    select_keys,
    without_none,
)
from toolkit.adapters.gemini.codec import (
    decode_response,
    encode_choice,
    encode_messages,
    encode_tools,
    is_older,
    message_text,
)
from toolkit.adapters.gemini.stream import Accumulator
from toolkit.adapters.history import encode_history
from toolkit.adapters.values import JsonDict
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import QueryOptions, ReasoningEffort

if TYPE_CHECKING:
    from google import genai


# What counting tokens takes of a config.
_COUNTED: Final = frozenset({"system_instruction", "tools", "http_options"})
# What Google's own endpoint with OpenAI's API makes of an effort for Gemini 2.5.
_BUDGETS: Final = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}


class GeminiDriver(CountingDriver):
    """Queries through ``genai.Client``. Only Vertex counts tools when it counts tokens."""

    def __init__(self, client: genai.Client, *, model: str) -> None:
        super().__init__(_exchange(client.models, model, closing), _counting(client.models, client.vertexai))
        self._client = client  # the SDK closes one that nobody refers to


class AsyncGeminiDriver(AsyncCountingDriver):
    """Queries through the ``aio`` of ``genai.Client``. Only Vertex counts tools when it counts tokens."""

    def __init__(self, client: genai.Client, *, model: str) -> None:
        models = client.aio.models
        super().__init__(_exchange(models, model, _closing_response), _counting(models, client.vertexai))
        self._client = client  # the SDK closes one that nobody refers to


def _exchange(models: Any, model: str, manage: Any) -> Exchange:
    return Exchange(
        provider_name="gcp.gemini",
        model=model,
        build_request=partial(build_request, model),
        send=models.generate_content,
        send_streaming=models.generate_content_stream,
        decode=decode_response,
        accumulator=Accumulator,
        manage=manage,
        history="contents",
    )


def _counting(models: Any, is_vertex: bool | None) -> Counting:
    return Counting(models.count_tokens, partial(_select_counted, bool(is_vertex)), "total_tokens")


def _select_counted(is_vertex: bool, request: JsonDict) -> JsonDict:
    """Gemini's own API counts contents only, so the system text is counted as one; tools cannot be counted there."""
    config = select_keys(request["config"], _COUNTED if is_vertex else frozenset({"http_options"}))
    system = request["config"].get("system_instruction")
    before = [{"role": "user", "parts": [{"text": system}]}] if system and not is_vertex else []
    return {"model": request["model"], "contents": [*before, *request["contents"]], "config": config}


def build_request(model: str, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``generate_content``. All system texts go into the config."""
    messages = join_messages_with_system(prompt, options)
    system = encode_history(prompt, messages, _system_texts)
    config: JsonDict = {"automatic_function_calling": {"disable": True}}
    if system:
        config["system_instruction"] = "\n\n".join(system)
    if options.tools:
        config["tools"] = encode_tools(options.tools)
        config["tool_config"] = encode_choice(options.tool_choice)
    config |= without_none(
        max_output_tokens=options.max_tokens,
        temperature=options.temperature,
        thinking_config=_encode_thinking(options.reasoning, model),
    )
    if options.output is not None:
        config |= {"response_mime_type": "application/json", "response_json_schema": options.output.schema}
    if options.timeout is not None:
        config["http_options"] = {"timeout": int(options.timeout * 1000)}
    contents = encode_history(prompt, messages, encode_messages, model)
    return {"model": model, "contents": contents, "config": {**config, **options.extra}}


def _system_texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [message_text(one) for one in messages if isinstance(one, TextMessage) and one.role == "system"]


def _encode_thinking(reasoning: ReasoningEffort | int | None, model: str) -> JsonDict | None:
    """A budget, or a level: models before Gemini 3 refuse levels, and newer ones have none that means no reasoning."""
    if reasoning is None:
        return None
    if isinstance(reasoning, int) or reasoning == "none":
        return {"thinking_budget": 0 if reasoning == "none" else reasoning}
    level = {"xhigh": "high", "max": "high"}.get(reasoning, reasoning)
    return {"thinking_budget": _BUDGETS[level]} if is_older(model) else {"thinking_level": level.upper()}


@asynccontextmanager
async def _closing_response(chunks: Any) -> AsyncIterator[Any]:
    """Closes the HTTP response of a stream that was not read to its end.

    The SDK leaves that to garbage collection, because its generators and the response refer to each other. So the response
    is looked up in the frames of the generators.
    """
    try:
        yield chunks
    finally:
        for response in _open_responses(chunks):
            await response.aclose()
        await chunks.aclose()


def _open_responses(held: Any) -> Iterator[Any]:
    """The HTTP responses that nested generators read from."""
    if isasyncgen(held) and held.ag_frame is not None:
        for value in list(held.ag_frame.f_locals.values()):
            yield from _open_responses(value)
    response = getattr(held, "response_stream", None)
    if hasattr(response, "aclose"):
        yield response
