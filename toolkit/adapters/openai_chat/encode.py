"""The neutral format into chat completions' JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.argument_text import arguments_text, compact
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.openai_chat.content import encode_parts
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import provider_name
from toolkit.adapters.strict.adapter import strict_receipt
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "openai_chat"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def sent_name(name: str) -> str:
    """The name of a tool as this provider takes it."""
    return provider_name(name, _NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """``strict`` asks for strict mode where a definition does not say; native tools of this provider go out unchanged.

    In strict mode goes the schema of the definition's receipt (``toolkit.adapters.strict``), and what the model answers
    comes back through ``decode_strict_calls``. A schema that strict mode cannot carry goes out as it is, without.
    """
    return [_tool(definition, strict) for definition in definitions]


def _tool(definition: AnyDefinition, strict: bool | None) -> JsonDict:
    if isinstance(definition, NativeTool):
        return dict(definition.raw)
    receipt = strict_receipt(definition, strict, PROVIDER)
    function: JsonDict = {
        "name": sent_name(definition.name),
        "description": definition.description,
        "parameters": definition.parameters if receipt is None else receipt.schema,
    }
    wanted = definition.strict if definition.strict is not None else strict
    if wanted is not None:
        function["strict"] = wanted if receipt is None else receipt.is_strict
    made: JsonDict = restored(
        {"type": "function", "function": function}, own(definition.metadata, PROVIDER).get("residue")
    )
    return made


def encode_choice(choice: ToolChoice) -> Any:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": sent_name(choice.name)}}
    return choice.raw if isinstance(choice, NativeChoice) else choice


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [restored(encode_message(message), own(message.metadata, PROVIDER).get("residue")) for message in messages]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message without what only its metadata knows of."""
    kept = own(message.metadata, PROVIDER)
    if isinstance(message, TextMessage):
        content = message.content if isinstance(message.content, str) else encode_parts(message.content, kept)
        return {"role": message.role, "content": content, **kept.get("extra", {})}
    if isinstance(message, AssistantToolCallMessage):
        calls = [encode_call(call) for call in message.tool_calls]
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls, **kept.get("extra", {})}
    result = message.result
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": _result(result, kept)}


def encode_call(call: ToolCall) -> JsonDict:
    kept = own(call.metadata, PROVIDER)
    if kept.get("type") == "custom":
        made: JsonDict = {"id": call.id, "type": "custom", "custom": {"name": call.name, **call.arguments}}
    else:
        function = {"name": sent_name(call.name), "arguments": arguments_text(call)}
        made = {"id": call.id, "type": "function", "function": function}
    whole: JsonDict = restored(made, kept.get("residue"))
    return whole


def _result(result: ToolResult, kept: JsonDict) -> Any:
    if result.kind == "text":
        return result.value
    if result.kind == "error":
        return compact({"error": result.value})
    if result.kind == "data":
        return compact(result.value)
    return encode_parts(result.value, kept) if isinstance(result.value, Sequence) else compact(result.value)
