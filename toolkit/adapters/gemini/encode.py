"""The neutral format into Gemini's contents.

One content is one turn of the user or the model. Neutral messages are finer: results and what the user says beside them
are messages of their own, so each remembers where that is not plain whether it stood in a content with the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.gemini.content import (
    PROVIDER,
    call_part,
    is_signed,
    media_part,
    result_part,
    sent_name,
    unsigned,
)
from toolkit.adapters.gemini.key_case import respelled
from toolkit.adapters.gemini.result_order import paired
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage

# What signatures are bound to: ``3`` of ``models/gemini-3-pro-preview``.
_FAMILY: Final = re.compile(r"gemini-(\d+)(?!\d)")

__all__ = ["PROVIDER", "encode_choice", "encode_messages", "encode_tools", "split_system"]


def encode_tools(
    definitions: Iterable[AnyDefinition], strict: bool | None = None, *, openapi_subset: bool = False
) -> list[JsonDict]:
    """One list of declarations, and native tools as they are. Gemini has no strict mode.

    :param openapi_subset: for models that do not take JSON Schema: parameters in the part of OpenAPI they know.
    """
    tools: list[JsonDict] = []
    own_list: list[JsonDict] | None = None
    for definition in definitions:
        if isinstance(definition, NativeTool):
            tools.append(dict(definition.raw))
            continue
        kept = own(definition.metadata, PROVIDER)
        declared = respelled(_declaration(definition, openapi_subset), kept.get("spelling"))
        declaration = restored(declared, kept.get("residue"))
        key = "function_declarations" if kept.get("list_spelling") == "snake" else "functionDeclarations"
        # Only a list that was begun here goes on: a native tool may have declarations of its own.
        goes_on = bool(tools) and not kept.get("apart") and tools[-1].get(key) is own_list
        if goes_on and own_list is not None:
            own_list.append(declaration)
        else:
            own_list = [declaration]
            tools.append({key: own_list})
    return tools


def _declaration(definition: ToolDefinition, openapi_subset: bool) -> JsonDict:
    made: JsonDict = {"name": sent_name(definition.name), "description": definition.description}
    if openapi_subset or own(definition.metadata, PROVIDER).get("openapi"):
        return {**made, "parameters": to_openapi(definition.parameters)}
    return {**made, "parametersJsonSchema": definition.parameters}


def encode_choice(choice: ToolChoice) -> Any:
    """The ``toolConfig``."""
    if isinstance(choice, NativeChoice):
        return choice.raw
    if isinstance(choice, NamedTool):
        return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [sent_name(choice.name)]}}
    return {"functionCallingConfig": {"mode": {"auto": "AUTO", "none": "NONE", "required": "ANY"}[choice]}}


def split_system(messages: Sequence[ChatMessage]) -> tuple[JsonDict | None, list[ChatMessage]]:
    """What goes into ``systemInstruction``: all system texts, wherever they stand. And the other messages."""
    system = [one for one in messages if isinstance(one, TextMessage) and one.role == "system"]
    texts = [
        one.content if isinstance(one.content, str) else "".join(b.text or "" for b in one.content) for one in system
    ]
    rest = [one for one in messages if not (isinstance(one, TextMessage) and one.role == "system")]
    return ({"parts": [{"text": text} for text in texts]} if texts else None), rest


def encode_messages(messages: Sequence[ChatMessage], model: str | None = None) -> list[JsonDict]:
    """The contents. System texts are for ``systemInstruction``, so they are left out here.

    :param model: where this goes: signatures of another family of models stay behind.
    """
    contents: list[JsonDict] = []
    roles: list[str] = []
    before: ChatMessage | None = None
    for message in paired(messages):
        if isinstance(message, TextMessage) and message.role == "system":
            continue
        kept = own(message.metadata, PROVIDER)
        role, parts = _turn(message, model)
        joined = kept.get("joined") or (
            isinstance(before, ToolResultMessage) and isinstance(message, ToolResultMessage) and not kept.get("apart")
        )
        if joined and roles and roles[-1] == role:
            contents[-1]["parts"] += parts
        else:
            named = {"role": role} if "role" not in kept else {"role": kept["role"]} if kept["role"] else {}
            contents.append({**named, "parts": parts})
            roles.append(role)
        before = message
    return contents


def _turn(message: ChatMessage, model: str | None) -> tuple[str, list[JsonDict]]:
    kept = own(message.metadata, PROVIDER)
    if isinstance(message, ToolResultMessage):
        return "user", [restored(respelled(result_part(message.result), kept.get("spelling")), kept.get("residue"))]
    if isinstance(message, TextMessage) and message.role == "user":
        blocks = _text_part(message.content) if isinstance(message.content, str) else map(media_part, message.content)
        extras: JsonDict = kept.get("parts", {})
        parts = [restored(respelled(part, kept.get("spelling")), extras.get(str(at))) for at, part in enumerate(blocks)]
        for place, raw in sorted((int(place), raw) for place, raw in kept.get("native_parts", {}).items()):
            parts.insert(place, raw)
        return "user", parts
    return "model", _model_parts(message, kept, model)


def _text_part(text: str) -> list[JsonDict]:
    return [{"text": text}] if text else []


def _model_parts(message: TextMessage | AssistantToolCallMessage, kept: JsonDict, model: str | None) -> list[JsonDict]:
    """The parts of a turn in the order they came; what was changed in the message takes its place in it."""
    signed = model is None or not _are_strangers(model, str(kept.get("model", "")))
    layout: Sequence[JsonDict] = kept.get("layout") or ()
    text = message.content if isinstance(message.content, str) else "".join(b.text or "" for b in message.content)
    calls = list(message.tool_calls) if isinstance(message, AssistantToolCallMessage) else []
    if not layout and isinstance(message, TextMessage) and not isinstance(message.content, str):
        return [media_part(block) for block in message.content]
    same_text = "".join(entry["text"].get("text", "") for entry in layout if "text" in entry) == text
    has_text = same_text
    parts: list[JsonDict] = []
    for entry in layout:
        if "native" in entry:
            parts += [entry["native"]] if signed or not is_signed(entry["native"]) else []
        elif "text" in entry:
            if same_text:
                parts.append(entry["text"] if signed else unsigned(entry["text"]))
            elif not has_text:
                has_text = True
                parts += _text_part(text)
        else:
            called = next((call for call in calls if call.id == entry["call"]), None)
            if called is not None:
                calls.remove(called)
                parts.append(call_part(called, signed=signed, spelling=kept.get("spelling")))
    rest = [call_part(call, signed=signed, spelling=kept.get("spelling")) for call in calls]
    return [*parts, *([] if has_text else _text_part(text)), *rest]


def _are_strangers(model: str, other: str) -> bool:
    """Whether these are known to be of different families. Of a name that tells none (``gemini-flash-latest``, an
    endpoint) nobody knows, and a signature too many does less harm than one too few."""
    one, another = _FAMILY.search(model), _FAMILY.search(other)
    return one is not None and another is not None and one[1] != another[1]
