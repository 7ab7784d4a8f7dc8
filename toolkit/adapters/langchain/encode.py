"""Encodes the neutral format for LangChain: tools for ``bind_tools``, and messages as ``message_to_dict`` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.langchain.content import encode_blocks, encode_layout
from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import OPENAI_NAME, provider_name
from toolkit.adapters.requests import encode_definitions, encode_function
from toolkit.adapters.result_value import result_blocks, result_text
from toolkit.adapters.strict.openai import parameters_to_send
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice, function_choice
from toolkit.adapters.values import has_broken_arguments
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

PROVIDER: Final = "langchain"
# ``any`` is the word for ``required`` that all models know.
CHOICES: Final[ChoiceTable] = {"auto": "auto", "none": "none", "required": "any"}
_RESERVED: Final = frozenset({"auto", "none", "any", "required"})
_TYPES: Final = {"user": "human", "assistant": "ai", "system": "system"}


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    # LangChain accepts any name; the providers behind it do not.
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """For ``model.bind_tools``, which takes OpenAI's form for every model. Native tools of any provider go out unchanged:
    only the model knows whether it has them.

    ``strict`` asks for OpenAI's strict mode: ``decode_strict_calls`` decodes what the model answers. A schema that it cannot
    express is sent as it is, without strict mode.
    """
    of_the_model = (
        replace(definition, provider=PROVIDER) if isinstance(definition, NativeTool) else definition
        for definition in definitions
    )
    return encode_definitions(of_the_model, PROVIDER, lambda definition: encode_definition(definition, strict))


def encode_definition(definition: ToolDefinition, strict: bool | None = None) -> JsonDict:
    """One tool, without what only its metadata knows."""
    parameters, is_strict = parameters_to_send(definition, strict, PROVIDER)
    return encode_function(sent_name(definition.name), definition, parameters, is_strict)


def encode_choice(choice: ToolChoice) -> Any:
    """For ``bind_tools(tool_choice=...)``. A native choice goes out unchanged: only the model knows whether it has it."""
    choice = replace(choice, provider=PROVIDER) if isinstance(choice, NativeChoice) else choice
    return encode_tool_choice(choice, PROVIDER, CHOICES, _encode_named_choice)


def _encode_named_choice(name: str) -> Any:
    sent = sent_name(name)
    return function_choice(sent) if sent in _RESERVED else sent


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [restore(encode_message(message), provider_metadata(message.metadata, PROVIDER)) for message in messages]


def as_langchain_messages(messages: Sequence[ChatMessage]) -> list[BaseMessage]:
    """The same as objects of LangChain, for ``model.invoke``."""
    from langchain_core.messages import messages_from_dict

    return messages_from_dict(encode_messages(messages))


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    kept = provider_metadata(message.metadata, PROVIDER)
    if isinstance(message, AssistantToolCallMessage):
        return _encode_assistant(_encode_text(message.content, message.tool_calls, kept), message.tool_calls)
    if isinstance(message, TextMessage):
        if not isinstance(message.content, str):
            content: Any = encode_blocks(message.content, kept)
        else:
            content = _encode_text(message.content, (), kept)
        return _encode_assistant(content, ()) if message.role == "assistant" else _wrap(_TYPES[message.role], content)
    result = message.result
    more = {"tool_call_id": result.tool_call_id, "artifact": None}
    name = sent_name(result.name) if result.name else None
    status = "error" if result.kind == "error" else "success"
    return _wrap("tool", result_content(result, kept), **more, name=name, status=status)


def _encode_text(text: str, calls: Sequence[ToolCall], kept: JsonDict) -> Any:
    return encode_layout(text, calls, kept["layout"]) if "layout" in kept else text


def _encode_assistant(content: Any, calls: Sequence[ToolCall]) -> JsonDict:
    broken = [call for call in calls if has_broken_arguments(call)]
    return _wrap(
        "ai",
        content,
        tool_calls=[encode_call(call) for call in calls if call not in broken],
        invalid_tool_calls=[encode_call(call) for call in broken],
        usage_metadata=None,
    )


def _wrap(type: str, content: Any, **more: Any) -> JsonDict:
    base = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": type}
    return {"type": type, "data": {**base, "name": None, "id": None, **more}}


def encode_call(call: ToolCall) -> JsonDict:
    head: JsonDict = {"name": sent_name(call.name)}
    if has_broken_arguments(call):
        made = {**head, "args": call.raw_arguments, "id": call.id, "error": None, "type": "invalid_tool_call"}
    else:
        made = {**head, "args": call.arguments, "id": call.id, "type": "tool_call"}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


def result_content(result: ToolResult, kept: JsonDict) -> Any:
    """The content of a ``ToolMessage``. An error is its plain text; the status of the message says that it is one."""
    if result.kind == "error":
        return result.value
    blocks = result_blocks(result)
    return result_text(result) if blocks is None else encode_blocks(blocks, kept)
