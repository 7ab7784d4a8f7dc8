"""Encodes the neutral format as the JSON of Cohere's v2 chat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from toolkit.adapters.cohere.content import encode_parts, encode_text, takes
from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.media.moved import move_media, never
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import OPENAI_NAME, provider_name
from toolkit.adapters.requests import encode_definitions, encode_function
from toolkit.adapters.result_value import result_blocks, result_text
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice
from toolkit.adapters.values import arguments_text
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage

PROVIDER: Final = "cohere"
CHOICES: Final[ChoiceTable] = {"auto": None, "none": "NONE", "required": "REQUIRED"}


def _sent_name(name: str) -> str:
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """Cohere's strict mode is a field of the whole request, ``strict_tools``, and is not set here."""
    return encode_definitions(definitions, PROVIDER, encode_definition)


def encode_definition(definition: ToolDefinition) -> JsonDict:
    """One tool, without what only its metadata knows."""
    return encode_function(_sent_name(definition.name), definition, definition.parameters)


def encode_choice(choice: ToolChoice) -> Any:
    """None for ``auto``: leave the field out then. Cohere cannot require one tool by name."""
    return encode_tool_choice(choice, PROVIDER, CHOICES, _refuse_named_choice)


def _refuse_named_choice(name: str) -> NoReturn:
    raise ValueError(f"Cohere cannot require one tool by name; send {name!r} alone, with tool_choice='required'")


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Only users' messages take images: those of other messages follow in one of a user."""
    placed = move_media(messages, PROVIDER, by_users=takes, in_results=never)
    return [restore(encode_message(message), provider_metadata(message.metadata, PROVIDER)) for message in placed]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    kept = provider_metadata(message.metadata, PROVIDER)
    if isinstance(message, AssistantToolCallMessage):
        return _encode_turn(message, kept)
    if isinstance(message, TextMessage):
        said = message.content
        content = encode_text(said, kept) if isinstance(said, str) else encode_parts(said, kept)
        return {"role": message.role, "content": content}
    result = message.result
    blocks = result_blocks(result)
    result_content = result_text(result) if blocks is None else encode_parts(blocks, kept)
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": result_content}


def _encode_turn(message: AssistantToolCallMessage, kept: JsonDict) -> JsonDict:
    """A message with calls. The model's plan, which is thinking and not text, is sent back with them."""
    made: JsonDict = {"role": "assistant"}
    if message.content or kept.get("is_list"):
        made["content"] = encode_text(message.content, kept)
    if "tool_plan" in kept:
        made["tool_plan"] = kept["tool_plan"]
    return {**made, "tool_calls": [encode_call(call) for call in message.tool_calls]}


def encode_call(call: ToolCall) -> JsonDict:
    function = {"name": _sent_name(call.name), "arguments": arguments_text(call)}
    made: JsonDict = {"id": call.id, "type": "function", "function": function}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole
