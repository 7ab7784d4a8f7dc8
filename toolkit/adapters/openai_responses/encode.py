"""The neutral format into the items of Responses.

An assistant's turn is several items there: what it thought, what it said, what it called, what the server ran for it. The
neutral message has the text and the calls; the rest stands in its metadata as ``layout``, item by item, in its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.argument_text import arguments_text, compact
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.openai_responses.content import encode_parts, is_text, text_of
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import provider_name
from toolkit.adapters.strict.adapter import strict_receipt
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "openai_responses"
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
    wanted = definition.strict if definition.strict is not None else strict
    made: JsonDict = {
        "type": "function",
        "name": sent_name(definition.name),
        "description": definition.description,
        "parameters": definition.parameters if receipt is None else receipt.schema,
        # Left out, it would mean true here.
        "strict": bool(wanted) if receipt is None else receipt.is_strict,
    }
    whole: JsonDict = restored(made, own(definition.metadata, PROVIDER).get("residue"))
    return whole


def encode_choice(choice: ToolChoice) -> Any:
    if isinstance(choice, NamedTool):
        return {"type": "function", "name": sent_name(choice.name)}
    return choice.raw if isinstance(choice, NativeChoice) else choice


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The input list. What a server made by itself (``previous_response_id``) is not in it."""
    custom: set[str] = set()
    items: list[JsonDict] = []
    for message in messages:
        items += _items(message, own(message.metadata, PROVIDER), custom)
    return items


def _items(message: ChatMessage, kept: JsonDict, custom: set[str]) -> list[JsonDict]:
    if isinstance(message, AssistantToolCallMessage):
        custom.update(call.id for call in message.tool_calls if own(call.metadata, PROVIDER).get("type") == "custom")
        return _turn(message, kept.get("layout") or [])
    if isinstance(message, TextMessage):
        if "layout" in kept:
            return _turn(AssistantToolCallMessage(_text(message), ()), kept["layout"])
        return [restored(encode_text(message), kept.get("residue"))]
    return [restored(encode_result(message.result, kept, custom), kept.get("residue"))]


def _text(message: TextMessage) -> str:
    return message.content if isinstance(message.content, str) else text_of(encode_parts(message.content, {}))


def encode_text(message: TextMessage) -> JsonDict:
    """A message item without what only its metadata knows of."""
    kept = own(message.metadata, PROVIDER)
    content = message.content
    if not isinstance(content, str):
        content_json: Any = encode_parts(content, kept, role=message.role)
        return {"role": message.role, "content": content_json}
    return {"role": message.role, "content": content}


def encode_result(result: ToolResult, kept: JsonDict, custom: set[str]) -> JsonDict:
    """The item of a result without what only its metadata knows of."""
    kind = "custom_tool_call_output" if result.tool_call_id in custom else "function_call_output"
    return {"type": kind, "call_id": result.tool_call_id, "output": _output(result, kept)}


def encode_call(call: ToolCall) -> JsonDict:
    kept = own(call.metadata, PROVIDER)
    if kept.get("type") == "custom":
        made: JsonDict = {"type": "custom_tool_call", "call_id": call.id, "name": call.name, **call.arguments}
    else:
        name = sent_name(call.name)
        made = {"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments_text(call)}
    whole: JsonDict = restored(made, kept.get("residue"))
    return whole


def _turn(message: AssistantToolCallMessage, layout: Sequence[JsonDict]) -> list[JsonDict]:
    """The items of a turn in the order they came; what was changed in the message takes its place in it."""
    said = [entry["text"] for entry in layout if "text" in entry]
    same_text = "".join(text_of(item.get("content")) for item in said) == message.content
    calls = list(message.tool_calls)
    items: list[JsonDict] = []
    text = None if same_text else message.content
    for entry in layout:
        if "native" in entry:
            items.append(entry["native"])
        elif "text" in entry:
            items += [entry["text"]] if same_text else _edited(entry["text"], text or "")
            text = None
        else:
            called = next((call for call in calls if call.id == entry["call"]), None)
            if called is not None:
                calls.remove(called)
                items.append(encode_call(called))
    return [*items, *_said(text or ""), *map(encode_call, calls)]


def _edited(item: JsonDict, text: str) -> list[JsonDict]:
    """A message item that says something else now. What it holds beside its text stays."""
    parts = item.get("content")
    if not isinstance(parts, list):
        return [{**item, "content": text}] if text else []
    rest = [part for part in parts if not is_text(part)]
    shape = next((part for part in parts if is_text(part)), {"type": "output_text"})
    # What was noted about places in the old text does not hold for the new one.
    noted: JsonDict = {"annotations": []} if "annotations" in shape else {}
    content = [*([{"type": shape["type"], "text": text, **noted}] if text else []), *rest]
    return [{**item, "content": content}] if content else []


def _said(text: str) -> list[JsonDict]:
    return [{"role": "assistant", "content": text}] if text else []


def _output(result: ToolResult, kept: JsonDict) -> Any:
    if result.kind == "text":
        return result.value
    if result.kind == "error":
        return compact({"error": result.value})
    if result.kind == "data":
        return compact(result.value)
    return encode_parts(result.value, kept) if isinstance(result.value, Sequence) else compact(result.value)
