"""Drivers over Anthropic's client, which the caller makes and keeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.anthropic.decode import decode_response, decode_strict_calls
from toolkit.adapters.anthropic.encode import encode_choice, encode_messages, encode_tools, split_system
from toolkit.adapters.anthropic.stream import Accumulator
from toolkit.adapters.base_driver import (
    AsyncBaseDriver,
    BaseDriver,
    Exchange,
    Prompt,
    join_messages_with_system,
    without_none,
)
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.adapter import decode_strict_result
from toolkit.wire.query import QueryOptions

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

# The API requires a number; every model accepts this one.
_MAX_TOKENS: Final = 4096
# Arguments the SDK takes by name. The rest goes into the body: the API knows more fields than any version of the SDK.
_BY_NAME: Final = frozenset(
    {"model", "max_tokens", "messages", "timeout", "extra_headers", "extra_query", "user_profile_id", "workspace_id"}
)


class AnthropicDriver(BaseDriver):
    """Queries through ``Anthropic``. ``max_tokens`` holds for queries whose options do not set it."""

    def __init__(self, client: Anthropic, *, model: str, max_tokens: int = _MAX_TOKENS) -> None:
        super().__init__(_exchange(client, model, max_tokens))


class AsyncAnthropicDriver(AsyncBaseDriver):
    """Queries through ``AsyncAnthropic``. ``max_tokens`` holds for queries whose options do not set it."""

    def __init__(self, client: AsyncAnthropic, *, model: str, max_tokens: int = _MAX_TOKENS) -> None:
        super().__init__(_exchange(client, model, max_tokens))


def _exchange(client: Anthropic | AsyncAnthropic, model: str, max_tokens: int) -> Exchange:
    create: Any = client.messages.create
    return Exchange(
        build_request=partial(build_request, model, max_tokens),
        send=create,
        send_streaming=partial(create, stream=True),
        decode=decode_response,
        accumulator=Accumulator,
        finish=partial(decode_strict_result, decode_strict_calls),
    )


def build_request(model: str, max_tokens: int, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``messages.create``. System texts at the front go into their own field."""
    system, rest = split_system(join_messages_with_system(prompt, options))
    request: JsonDict = {
        "model": model,
        "max_tokens": max_tokens if options.max_tokens is None else options.max_tokens,
        "messages": encode_messages(rest),
    }
    if options.tools:
        request["tools"] = encode_tools(options.tools, options.strict)
        request["tool_choice"] = encode_choice(options.tool_choice)
    request |= without_none(system=system, temperature=options.temperature, timeout=options.timeout)
    request |= options.extra
    named = {key: value for key, value in request.items() if key in _BY_NAME}
    body = {key: value for key, value in request.items() if key not in _BY_NAME and key != "extra_body"}
    return {**named, "extra_body": {**body, **request.get("extra_body", {})}}
