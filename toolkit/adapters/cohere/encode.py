"""The neutral format into the JSON of Cohere's v2 chat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.argument_text import arguments_text, compact
from toolkit.adapters.cohere.content import encode_parts, encode_said
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import provider_name
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "cohere"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """Cohere's strict mode is said once for a request, as ``strict_tools``, and not here."""
    return [_tool(definition) for definition in definitions]


def _tool(definition: AnyDefinition) -> JsonDict:
    if isinstance(definition, NativeTool):
        return dict(definition.raw)
    function = {
        "name": provider_name(definition.name, _NAME),
        "description": definition.description,
        "parameters": definition.parameters,
    }
    made: JsonDict = restored(
        {"type": "function", "function": function}, own(definition.metadata, PROVIDER).get("residue")
    )
    return made


def encode_choice(choice: ToolChoice) -> Any:
    """None where the choice is the model's: the field is then left out. A single tool cannot be asked for."""
    if isinstance(choice, NativeChoice):
        return choice.raw
    if isinstance(choice, NamedTool):
        raise ValueError("Cohere cannot be made to call one tool: send that tool alone, with tool_choice='required'")
    return None if choice == "auto" else choice.upper()


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [restored(encode_message(message), own(message.metadata, PROVIDER).get("residue")) for message in messages]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message without what only its metadata knows of."""
    kept = own(message.metadata, PROVIDER)
    if isinstance(message, AssistantToolCallMessage):
        return _turn(message, kept)
    if isinstance(message, TextMessage):
        said = message.content
        content = encode_said(said, kept) if isinstance(said, str) else encode_parts(said, kept)
        return {"role": message.role, "content": content}
    result = message.result
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": _result(result, kept)}


def _turn(message: AssistantToolCallMessage, kept: JsonDict) -> JsonDict:
    """Beside its calls a model tells its plan, which it wants to see again; it is thinking, and no text of ours."""
    made: JsonDict = {"role": "assistant"}
    if message.content or kept.get("is_list"):
        made["content"] = encode_said(message.content, kept)
    if "tool_plan" in kept:
        made["tool_plan"] = kept["tool_plan"]
    return {**made, "tool_calls": [encode_call(call) for call in message.tool_calls]}


def encode_call(call: ToolCall) -> JsonDict:
    function = {"name": provider_name(call.name, _NAME), "arguments": arguments_text(call)}
    made: JsonDict = restored(
        {"id": call.id, "type": "function", "function": function}, own(call.metadata, PROVIDER).get("residue")
    )
    return made


def _result(result: ToolResult, kept: JsonDict) -> Any:
    if result.kind == "text":
        return result.value
    if result.kind == "error":
        return compact({"error": result.value})
    if result.kind == "multimodal" and isinstance(result.value, Sequence):
        return encode_parts(result.value, kept)
    return compact(result.value)
