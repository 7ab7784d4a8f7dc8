"""The neutral format into LangChain's: what ``bind_tools`` takes, and messages as ``message_to_dict`` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.langchain.content import encode_blocks, encode_layout
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import provider_name
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

PROVIDER: Final = "langchain"
# LangChain takes any name; the providers behind it do not.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPES: Final = {"user": "human", "assistant": "ai", "system": "system"}
WORDS: Final = frozenset({"auto", "none", "any", "required"})


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """For ``model.bind_tools``, which takes OpenAI's form for every model; native tools go out unchanged."""
    return [_tool(definition, strict) for definition in definitions]


def _tool(definition: AnyDefinition, strict: bool | None) -> JsonDict:
    if isinstance(definition, NativeTool):
        return dict(definition.raw)
    function: JsonDict = {
        "name": provider_name(definition.name, _NAME),
        "description": definition.description,
        "parameters": definition.parameters,
    }
    wanted = definition.strict if definition.strict is not None else strict
    if wanted is not None:
        function["strict"] = wanted
    made: JsonDict = restored(
        {"type": "function", "function": function}, own(definition.metadata, PROVIDER).get("residue")
    )
    return made


def encode_choice(choice: ToolChoice) -> Any:
    """For ``bind_tools(tool_choice=...)``: ``any`` is what all models know for ``required``; a tool goes by its name."""
    if isinstance(choice, NativeChoice):
        return choice.raw
    if isinstance(choice, NamedTool):
        name = provider_name(choice.name, _NAME)
        return {"type": "function", "function": {"name": name}} if name in WORDS else name
    return "any" if choice == "required" else choice


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [restored(encode_message(message), own(message.metadata, PROVIDER).get("residue")) for message in messages]


def as_langchain_messages(messages: Sequence[ChatMessage]) -> list[BaseMessage]:
    """The same as LangChain's objects, for ``model.invoke``."""
    from langchain_core.messages import messages_from_dict

    return messages_from_dict(encode_messages(messages))


def encode_message(message: ChatMessage) -> JsonDict:
    """One message without what only its metadata knows of."""
    kept = own(message.metadata, PROVIDER)
    if isinstance(message, AssistantToolCallMessage):
        return _assistant(_said(message.content, message.tool_calls, kept), message.tool_calls)
    if isinstance(message, TextMessage):
        if not isinstance(message.content, str):
            content: Any = encode_blocks(message.content, kept)
        else:
            content = _said(message.content, (), kept)
        return _assistant(content, ()) if message.role == "assistant" else _data(_TYPES[message.role], content)
    result = message.result
    more = {"tool_call_id": result.tool_call_id, "artifact": None}
    name = provider_name(result.name, _NAME) if result.name else None
    status = "error" if result.kind == "error" else "success"
    return _data("tool", result_content(result, kept), **more, name=name, status=status)


def _said(text: str, calls: Sequence[ToolCall], kept: JsonDict) -> Any:
    return encode_layout(text, calls, kept["layout"]) if "layout" in kept else text


def _assistant(content: Any, calls: Sequence[ToolCall]) -> JsonDict:
    broken = [call for call in calls if is_broken(call)]
    return _data(
        "ai",
        content,
        tool_calls=[encode_call(call) for call in calls if call not in broken],
        invalid_tool_calls=[encode_call(call) for call in broken],
        usage_metadata=None,
    )


def _data(type: str, content: Any, **more: Any) -> JsonDict:
    base = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": type}
    return {"type": type, "data": {**base, "name": None, "id": None, **more}}


def encode_call(call: ToolCall) -> JsonDict:
    head: JsonDict = {"name": provider_name(call.name, _NAME)}
    if is_broken(call):
        made = {**head, "args": call.raw_arguments, "id": call.id, "error": None, "type": "invalid_tool_call"}
    else:
        made = {**head, "args": call.arguments, "id": call.id, "type": "tool_call"}
    whole: JsonDict = restored(made, own(call.metadata, PROVIDER).get("residue"))
    return whole


def is_broken(call: ToolCall) -> bool:
    """Whether the argument text never became an object: LangChain has a list of its own for such calls."""
    text = call.unread_text
    if text is None or call.arguments:
        return False
    try:
        return not isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return True


def result_content(result: ToolResult, kept: JsonDict) -> Any:
    """What a ``ToolMessage`` holds: an error is its text, and the message's status says that it is one."""
    if result.kind in ("text", "error"):
        return result.value
    if result.kind == "multimodal" and isinstance(result.value, Sequence):
        return encode_blocks(result.value, kept)
    return compact(result.value)
