"""Encodes the neutral format as Ollama's chat messages. They have no ids: results are matched by tool and order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolkit.adapters.conversation import group_results
from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.natives import own_native
from toolkit.adapters.ollama.content import encode_blocks
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import provider_name
from toolkit.adapters.requests import encode_definitions, encode_function
from toolkit.adapters.result_value import result_blocks, result_text
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, ToolResultMessage

PROVIDER: Final = "ollama"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _sent_name(name: str) -> str:
    return provider_name(name, _NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """Ollama has no strict mode."""
    return encode_definitions(definitions, PROVIDER, encode_definition)


def encode_definition(definition: ToolDefinition) -> JsonDict:
    """One tool, without what only its metadata knows."""
    return encode_function(_sent_name(definition.name), definition, definition.parameters)


def encode_choice(choice: ToolChoice) -> Any:
    """Ollama always lets the model choose. For ``none``, send no tools; nothing else can be expressed."""
    if isinstance(choice, NativeChoice):
        return own_native(choice, PROVIDER)
    if choice in ("auto", "none"):
        return None
    raise ValueError("Ollama cannot require a tool call; use tool_choice='auto', or send only the tool to be called")


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [
        restore(encode_message(message), provider_metadata(message.metadata, PROVIDER))
        for message in _order_results(messages)
    ]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    if isinstance(message, ToolResultMessage):
        result = message.result
        blocks = result_blocks(result)
        content, images = (str(result_text(result)), []) if blocks is None else encode_blocks(blocks)
        made: JsonDict = {"role": "tool", "content": content, "tool_name": _sent_name(result.name)}
        return {**made, "images": images} if images else made
    kept = provider_metadata(message.metadata, PROVIDER)
    extra = {"thinking": kept["thinking"]} if "thinking" in kept else {}
    if isinstance(message, AssistantToolCallMessage):
        calls = [encode_call(call) for call in message.tool_calls]
        return {"role": "assistant", "content": message.content, **extra, "tool_calls": calls}
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content, **extra}
    content, images = encode_blocks(message.content)
    return {"role": message.role, "content": content, **extra, **({"images": images} if images else {})}


def encode_call(call: ToolCall) -> JsonDict:
    made: JsonDict = {"function": {"name": _sent_name(call.name), "arguments": call.arguments}}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


def _order_results(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """The messages with the results of a turn in the order of its calls, which is all that Ollama goes by."""
    for message, results in group_results(messages):
        if message is not None:
            yield message
        calls = message.tool_calls if isinstance(message, AssistantToolCallMessage) else ()
        yield from _order_by_calls(calls, results)


def _order_by_calls(calls: Sequence[ToolCall], results: list[ToolResultMessage]) -> list[ToolResultMessage]:
    places = {call.id: place for place, call in enumerate(calls)}
    answered = {message.result.tool_call_id for message in results}
    for call in calls:
        same = [other for other in calls if other.name == call.name]
        missing = [other for other in same if other.id not in answered]
        if results and missing and len(missing) < len(same):
            raise ValueError(
                f"{call.name!r} was called {len(same)} times and {len(missing)} results are missing; Ollama has no ids "
                "to tell which result belongs to which call; repair the history first (repair_history)"
            )
    return sorted(results, key=lambda message: places.get(message.result.tool_call_id, len(places)))
