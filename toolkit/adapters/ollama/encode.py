"""The neutral format into Ollama's chat messages. There are no ids: results are known by their tool and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.blocks.media_note import media_note
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import provider_name
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NativeChoice, ToolChoice
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, ToolResultMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "ollama"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """Ollama has no strict mode."""
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
    """Ollama lets its models choose: ``none`` is said by sending no tools, and nothing can be required of them."""
    if isinstance(choice, NativeChoice):
        return choice.raw
    if choice in ("auto", "none"):
        return None
    raise ValueError("Ollama cannot be made to call a tool: leave tool_choice at 'auto', or send that tool alone")


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    ordered = list(_in_call_order(messages))
    return [restored(encode_message(message), own(message.metadata, PROVIDER).get("residue")) for message in ordered]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message without what only its metadata knows of."""
    kept = own(message.metadata, PROVIDER)
    if isinstance(message, ToolResultMessage):
        result = message.result
        content, images = _result(result)
        made: JsonDict = {"role": "tool", "content": content, "tool_name": provider_name(result.name, _NAME)}
        return {**made, "images": images} if images else made
    extra = {"thinking": kept["thinking"]} if "thinking" in kept else {}
    if isinstance(message, AssistantToolCallMessage):
        calls = [encode_call(call) for call in message.tool_calls]
        return {"role": "assistant", "content": message.content, **extra, "tool_calls": calls}
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content, **extra}
    content, images = _blocks(message.content)
    return {"role": message.role, "content": content, **extra, **({"images": images} if images else {})}


def encode_call(call: ToolCall) -> JsonDict:
    made: JsonDict = {"function": {"name": provider_name(call.name, _NAME), "arguments": call.arguments}}
    whole: JsonDict = restored(made, own(call.metadata, PROVIDER).get("residue"))
    return whole


def _in_call_order(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """The results of a turn in the order of its calls, which is all Ollama goes by."""
    calls: Sequence[ToolCall] = ()
    results: list[ToolResultMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
            continue
        yield from _sorted(calls, results)
        results = []
        calls = message.tool_calls if isinstance(message, AssistantToolCallMessage) else ()
        yield message
    yield from _sorted(calls, results)


def _sorted(calls: Sequence[ToolCall], results: list[ToolResultMessage]) -> list[ToolResultMessage]:
    places = {call.id: place for place, call in enumerate(calls)}
    answered = {message.result.tool_call_id for message in results}
    for call in calls:
        same = [other for other in calls if other.name == call.name]
        missing = [other for other in same if other.id not in answered]
        if results and missing and len(missing) < len(same):
            raise ValueError(
                f"{call.name!r} was called {len(same)} times and {len(missing)} results are missing: without ids Ollama "
                "could not tell whose result is whose; mend the history first (repair_history)"
            )
    return sorted(results, key=lambda message: places.get(message.result.tool_call_id, len(places)))


def _result(result: ToolResult) -> tuple[str, list[str]]:
    if result.kind == "text":
        return str(result.value), []
    if result.kind == "error":
        return compact({"error": result.value}), []
    if result.kind == "multimodal" and isinstance(result.value, Sequence):
        return _blocks(result.value)
    return compact(result.value), []


def _blocks(blocks: Sequence[ContentBlock]) -> tuple[str, list[str]]:
    """Text, and images as data: that is all Ollama takes. Of anything else the model is told that it was there."""
    texts, images, notes = [], [], []
    for block in blocks:
        if block.text is not None:
            texts.append(block.text)
        elif block.type == "image" and block.data is not None:
            images.append(block.data)
        else:
            notes.append(media_note(block))
    said = "".join(texts)
    return "\n".join([said, *notes] if said else notes), images
