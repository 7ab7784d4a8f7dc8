"""Encodes the neutral format as the JSON of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.media.moved import move_media, never
from toolkit.adapters.openai_chat.content import PROVIDER as PROVIDER
from toolkit.adapters.openai_chat.content import encode_parts, takes
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import OPENAI_NAME, provider_id, provider_name
from toolkit.adapters.requests import encode_definitions, encode_function
from toolkit.adapters.result_value import result_blocks, result_text
from toolkit.adapters.strict.openai import parameters_to_send
from toolkit.adapters.text_tools import custom_input, is_custom, text_tools
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice, function_choice
from toolkit.adapters.values import arguments_text
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage

_LONGEST_ID: Final = 40
CHOICES: Final[ChoiceTable] = {"auto": "auto", "none": "none", "required": "required"}


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """``strict`` asks for strict mode for definitions that do not say; native tools of this provider go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema that strict mode cannot express is sent as it is, without strict mode.
    """
    return encode_definitions(definitions, PROVIDER, lambda definition: encode_definition(definition, strict))


def encode_definition(definition: ToolDefinition, strict: bool | None = None) -> JsonDict:
    """One tool, without what only its metadata knows."""
    if definition.text_argument is not None:
        return {"type": "custom", "custom": {"name": sent_name(definition.name), "description": definition.description}}
    parameters, is_strict = parameters_to_send(definition, strict, PROVIDER)
    return encode_function(sent_name(definition.name), definition, parameters, is_strict)


def encode_choice(choice: ToolChoice, definitions: Iterable[AnyDefinition] = ()) -> Any:
    """``definitions`` are the tools of the request: one that takes text is chosen in another form."""
    texts = text_tools(definitions)

    def encode_name(name: str) -> Any:
        sent = sent_name(name)
        return {"type": "custom", "custom": {"name": sent}} if name in texts else function_choice(sent)

    return encode_tool_choice(choice, PROVIDER, CHOICES, encode_name)


def _sent_id(id: str) -> str:
    return provider_id(id, _LONGEST_ID)


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Only users' messages take media: those of other messages follow in one of a user.

    Ids of other providers are shortened if they are too long, those of calls and results alike.
    """
    encoded: list[JsonDict] = []
    ids: dict[str, str] = {}
    for message in move_media(messages, PROVIDER, by_users=takes, in_results=never):
        made: JsonDict = restore(encode_message(message), provider_metadata(message.metadata, PROVIDER))
        if isinstance(message, AssistantToolCallMessage):
            ids |= {call.id: encode_call(call)["id"] for call in message.tool_calls if len(call.id) > _LONGEST_ID}
        elif isinstance(message, ToolResultMessage) and message.result.tool_call_id in ids:
            made = {**made, "tool_call_id": ids[message.result.tool_call_id]}
        encoded.append(made)
    return encoded


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    kept = provider_metadata(message.metadata, PROVIDER)
    if isinstance(message, TextMessage):
        content = message.content if isinstance(message.content, str) else encode_parts(message.content, kept)
        return {"role": message.role, "content": content, **kept.get("extra", {})}
    if isinstance(message, AssistantToolCallMessage):
        calls = [encode_call(call) for call in message.tool_calls]
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls, **kept.get("extra", {})}
    result = message.result
    blocks = result_blocks(result)
    result_content = result_text(result) if blocks is None else encode_parts(blocks, kept)
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": result_content}


def encode_call(call: ToolCall) -> JsonDict:
    kept = provider_metadata(call.metadata, PROVIDER)
    if is_custom(call, PROVIDER):
        custom = {"name": call.name, **custom_input(call, PROVIDER)}
        made: JsonDict = {"id": _sent_id(call.id), "type": "custom", "custom": custom}
    else:
        function = {"name": sent_name(call.name), "arguments": arguments_text(call)}
        made = {"id": _sent_id(call.id), "type": "function", "function": function}
    whole: JsonDict = restore(made, kept)
    return whole
