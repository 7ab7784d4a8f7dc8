"""Drivers over Anthropic's client, which the caller makes and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.anthropic.codec import (
    PROGRAM,
    PROVIDER,
    WRITER,
    add_breakpoints,
    decode_response,
    decode_strict_calls,
    encode_choice,
    encode_messages,
    encode_tools,
    split_system,
)
from toolkit.adapters.anthropic.stream import Accumulator
from toolkit.adapters.blocks import encode_call_block
from toolkit.adapters.driver import (
    AsyncCountingDriver,
    Counting,
    CountingDriver,
    Exchange,
    Prompt,
    enforced_schema,
    join_messages_with_system,
    select_keys,
    without_none,
)
from toolkit.adapters.history import encode_history
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.requests import find_program
from toolkit.adapters.strict import ANTHROPIC
from toolkit.adapters.strict.adapter import decode_strict_result
from toolkit.adapters.values import JsonDict, plain_object, plain_text
from toolkit.wire.definition import NativeChoice
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage
from toolkit.wire.query import QueryOptions, QueryResult, ReasoningEffort

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

# The API requires a number; every model accepts this one.
_MAX_TOKENS: Final = 4096
# Arguments the SDK takes by name. The rest goes into the body: the API knows more fields than any version of the SDK.
_BY_NAME: Final = frozenset(
    {"model", "max_tokens", "messages", "timeout", "extra_headers", "extra_query", "user_profile_id", "workspace_id"}
)
_SEARCHES: Final = "tool_search_tool_"
_SEARCH: Final = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


# What counting tokens takes of a body.
_COUNTED: Final = frozenset(
    {
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
        "context_management",
        "mcp_servers",
    }
)


class AnthropicDriver(CountingDriver):
    """Queries through ``Anthropic``. ``max_tokens`` holds for queries whose options do not set it."""

    def __init__(self, client: Anthropic, *, model: str, max_tokens: int = _MAX_TOKENS) -> None:
        super().__init__(_exchange(client, model, max_tokens), _counting(client))


class AsyncAnthropicDriver(AsyncCountingDriver):
    """Queries through ``AsyncAnthropic``. ``max_tokens`` holds for queries whose options do not set it."""

    def __init__(self, client: AsyncAnthropic, *, model: str, max_tokens: int = _MAX_TOKENS) -> None:
        super().__init__(_exchange(client, model, max_tokens), _counting(client))


def _exchange(client: Anthropic | AsyncAnthropic, model: str, max_tokens: int) -> Exchange:
    create: Any = client.messages.create
    return Exchange(
        provider_name="anthropic",
        model=model,
        build_request=partial(build_request, model, max_tokens),
        send=create,
        send_streaming=partial(create, stream=True),
        decode=decode_response,
        accumulator=Accumulator,
        finish=_finish,
        output_rules=ANTHROPIC,
    )


def _finish(result: QueryResult, options: QueryOptions) -> QueryResult:
    return decode_strict_result(partial(decode_strict_calls, output=options.output), result, options)


def _counting(client: Anthropic | AsyncAnthropic) -> Counting:
    return Counting(client.messages.count_tokens, _select_counted, "input_tokens")


def _select_counted(request: JsonDict) -> JsonDict:
    named = select_keys(request, _BY_NAME - {"max_tokens"})
    return {**named, "extra_body": select_keys(request["extra_body"], _COUNTED)}


def build_request(model: str, max_tokens: int, prompt: Prompt, options: QueryOptions) -> JsonDict:
    """The arguments of ``messages.create``. System texts at the front go into their own field."""
    system, rest = split_system(join_messages_with_system(prompt, options))
    # What the model thinks counts.
    budget = options.reasoning if isinstance(options.reasoning, int) else 0
    request: JsonDict = {
        "model": model,
        "max_tokens": max_tokens + budget if options.max_tokens is None else options.max_tokens,
        "messages": encode_history(prompt, rest, encode_messages),
    }
    if options.tools:
        tools = encode_tools(options.tools, options.strict, output=options.output)
        request["tools"] = _add_server_tools(tools)
        request["tool_choice"] = _encode_choice(options)
    request |= without_none(
        container=_waiting_container(rest),
        system=system,
        temperature=options.temperature,
        timeout=options.timeout,
        thinking=_encode_thinking(options.reasoning),
        output_config=_encode_output_config(options) or None,
    )
    add_breakpoints(request, options.cache_after)
    request |= options.extra
    named = {key: value for key, value in request.items() if key in _BY_NAME}
    body = {key: value for key, value in request.items() if key not in _BY_NAME and key != "extra_body"}
    return {**named, "extra_body": {**body, **request.get("extra_body", {})}}


def _add_server_tools(tools: list[JsonDict]) -> list[JsonDict]:
    """The tools, and unless the caller has them: a search if some are loaded later, and the tool that runs programs if some
    may be called from there.
    """
    types = [str(tool.get("type", "")) for tool in tools]
    is_deferred = any(tool.get("defer_loading") for tool in tools)
    program = next((found for tool in tools if (found := find_program(tool, PROGRAM))), None)
    added: list[JsonDict] = []
    if program is not None and not any(type.startswith(PROGRAM) for type in types):
        added.append({"type": program, "name": "code_execution"})
    if is_deferred and not any(type.startswith(_SEARCHES) for type in types):
        added.append(dict(_SEARCH))
    return [*added, *tools]


def _waiting_container(messages: Sequence[ChatMessage]) -> str | None:
    """The container of a program that waits for the results of its calls."""
    calling = next((one for one in reversed(messages) if isinstance(one, AssistantToolCallMessage)), None)
    sent = [encode_call_block(WRITER, call) for call in calling.tool_calls] if calling is not None else []
    callers = [plain_text(plain_object(block.get("caller")).get("type")) for block in sent]
    if calling is None or not any(caller.startswith(PROGRAM) for caller in callers):
        return None
    container = plain_object(provider_metadata(calling.metadata, PROVIDER).get("container"))
    return plain_text(container.get("id")) or None


def _encode_choice(options: QueryOptions) -> Any:
    choice = encode_choice(options.tool_choice)
    if options.parallel_calls is None or options.tool_choice == "none" or isinstance(options.tool_choice, NativeChoice):
        return choice
    return {**choice, "disable_parallel_tool_use": not options.parallel_calls}


def _encode_thinking(reasoning: ReasoningEffort | int | None) -> JsonDict | None:
    if reasoning is None:
        return None
    if isinstance(reasoning, int):
        return {"type": "enabled", "budget_tokens": reasoning}
    return {"type": "disabled" if reasoning == "none" else "adaptive"}


def _encode_output_config(options: QueryOptions) -> JsonDict:
    config: JsonDict = {}
    if isinstance(options.reasoning, str) and options.reasoning != "none":
        config["effort"] = "low" if options.reasoning == "minimal" else options.reasoning
    if options.output is not None:
        schema = enforced_schema(options.output, ANTHROPIC, "Anthropic")
        config["format"] = {"type": "json_schema", "schema": schema}
    return config
