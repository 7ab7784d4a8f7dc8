"""Encodes the neutral format as Gemini's contents.

One content is one turn of the user or the model. Neutral messages are smaller: each result is one, and so is the text between
results. Where it does not follow from their kinds, a message stores whether it shares a content with the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.gemini.content import (
    PROVIDER,
    encode_call,
    encode_parts,
    encode_result,
    encode_text,
    is_signed,
    sent_name,
    strip_signature,
    takes,
    takes_in_results,
)
from toolkit.adapters.gemini.key_case import respell
from toolkit.adapters.gemini.result_order import order_results
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.media.moved import move_media, never
from toolkit.adapters.natives import own_native
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage

CHOICES: Final[ChoiceTable] = {
    "auto": {"functionCallingConfig": {"mode": "AUTO"}},
    "none": {"functionCallingConfig": {"mode": "NONE"}},
    "required": {"functionCallingConfig": {"mode": "ANY"}},
}
# The model family that signatures are bound to: ``3`` in ``models/gemini-3-pro-preview``.
_FAMILY: Final = re.compile(r"gemini-(\d+)(?!\d)")
_LATEST: Final = re.compile(r"gemini-[a-z-]*latest\b")
_FOREIGN_CALL: Final = "skip_thought_signature_validator"


def encode_tools(
    definitions: Iterable[AnyDefinition], strict: bool | None = None, *, openapi_subset: bool = False
) -> list[JsonDict]:
    """One list of declarations, and native tools as they are. Gemini has no strict mode.

    :param openapi_subset: write parameters in the part of OpenAPI that models without JSON Schema know.
    """
    tools: list[JsonDict] = []
    own_list: list[JsonDict] | None = None
    for definition in definitions:
        if isinstance(definition, NativeTool):
            tools.append(own_native(definition, PROVIDER))
            continue
        kept = provider_metadata(definition.metadata, PROVIDER)
        declaration = restore(respell(_encode_declaration(definition, openapi_subset), kept.get("spelling")), kept)
        key = "function_declarations" if kept.get("list_spelling") == "snake" else "functionDeclarations"
        # Only a list that was started here goes on: a native tool may have declarations of its own.
        goes_on = bool(tools) and not kept.get("apart") and tools[-1].get(key) is own_list
        if goes_on and own_list is not None:
            own_list.append(declaration)
        else:
            own_list = [declaration]
            tools.append({key: own_list})
    return tools


def _encode_declaration(definition: ToolDefinition, openapi_subset: bool) -> JsonDict:
    made: JsonDict = {"name": sent_name(definition.name), "description": definition.description}
    if openapi_subset or provider_metadata(definition.metadata, PROVIDER).get("openapi"):
        return {**made, "parameters": to_openapi(definition.parameters)}
    return {**made, "parametersJsonSchema": definition.parameters}


def encode_choice(choice: ToolChoice) -> Any:
    """The ``toolConfig``."""
    return encode_tool_choice(choice, PROVIDER, CHOICES, lambda name: named_choice([sent_name(name)]))


def named_choice(names: list[str]) -> Any:
    """The ``toolConfig`` that allows these tools only."""
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names}}


def split_system(messages: Sequence[ChatMessage]) -> tuple[JsonDict | None, list[ChatMessage]]:
    """What goes into ``systemInstruction``, which is all system texts wherever they are, and the other messages."""
    texts: list[str] = []
    rest: list[ChatMessage] = []
    for message in _place_media(messages, None):
        if isinstance(message, TextMessage) and message.role == "system":
            texts.append(message_text(message))
        else:
            rest.append(message)
    return ({"parts": [{"text": text} for text in texts]} if texts else None), rest


def message_text(message: TextMessage | AssistantToolCallMessage) -> str:
    """The text of a message, without its media."""
    content = message.content
    return content if isinstance(content, str) else "".join(block.text or "" for block in content)


def encode_messages(messages: Sequence[ChatMessage], model: str | None = None) -> list[JsonDict]:
    """The contents. System texts are left out: they go into ``systemInstruction``.

    Media that the result of a tool cannot have follow in a content of the user.

    :param model: where this is sent: signatures of another model family are left out, calls without one get what the
        service wants instead, and models before Gemini 3 get no media in results and no resolution of single images.
    """
    contents: list[JsonDict] = []
    roles: list[str] = []
    before: ChatMessage | None = None
    for message in order_results(_place_media(messages, model)):
        if isinstance(message, TextMessage) and message.role == "system":
            continue
        kept = provider_metadata(message.metadata, PROVIDER)
        role, parts = _encode_message(message, kept, model)
        if role == "model" and not parts and not kept:
            continue  # an empty answer of another model, which the service would refuse
        joins = kept.get("joined") or (
            isinstance(before, ToolResultMessage) and isinstance(message, ToolResultMessage) and not kept.get("apart")
        )
        if joins and roles and roles[-1] == role:
            contents[-1]["parts"] += parts
        else:
            sent_role = kept.get("role", role)
            contents.append({**({"role": sent_role} if sent_role else {}), "parts": parts})
            roles.append(role)
        before = message
    return contents


def _place_media(messages: Sequence[ChatMessage], model: str | None) -> list[ChatMessage]:
    older = model is not None and is_older(model)
    in_results = never if older else takes_in_results
    placed = move_media(
        messages, PROVIDER, by_users=takes, in_results=in_results, by_models=takes, leave_in_place=not older
    )
    return [_without_detail(message) for message in placed] if older else list(placed)


def _without_detail(message: ChatMessage) -> ChatMessage:
    """The message for a model that takes no resolution for single images."""
    if not isinstance(message, TextMessage) or isinstance(message.content, str):
        return message
    return replace(message, content=[replace(block, detail=None) for block in message.content])


def _encode_message(message: ChatMessage, kept: JsonDict, model: str | None) -> tuple[str, list[JsonDict]]:
    """The role and the parts of a message."""
    if isinstance(message, ToolResultMessage):
        return "user", [restore(respell(encode_result(message.result), kept.get("spelling")), kept)]
    if isinstance(message, TextMessage) and message.role == "user":
        return "user", encode_parts(message.content, kept)
    parts = _encode_model_turn(message, kept, model)
    return "model", _sign_foreign_calls(parts) if model is not None and _wants_signatures(model) else parts


def _encode_model_turn(
    message: TextMessage | AssistantToolCallMessage, kept: JsonDict, model: str | None
) -> list[JsonDict]:
    """The parts of a turn in their original order. A changed text takes the place of the first text."""
    signed = model is None or not _differ_in_family(model, str(kept.get("model", "")))
    layout: Sequence[JsonDict] = kept.get("layout") or ()
    calls = list(message.tool_calls) if isinstance(message, AssistantToolCallMessage) else []
    if not layout and isinstance(message, TextMessage) and not isinstance(message.content, str):
        return encode_parts(message.content, {})
    text = message_text(message)
    is_same_text = "".join(entry["text"].get("text", "") for entry in layout if "text" in entry) == text
    has_text = is_same_text
    parts: list[JsonDict] = []
    for entry in layout:
        if "native" in entry:
            parts += [entry["native"]] if signed or not is_signed(entry["native"]) else []
        elif "text" in entry:
            if is_same_text:
                parts.append(entry["text"] if signed else strip_signature(entry["text"]))
            elif not has_text:
                has_text = True
                parts += encode_text(text)
        else:
            called = next((call for call in calls if call.id == entry["call"]), None)
            if called is not None:
                calls.remove(called)
                parts.append(encode_call(called, signed=signed, spelling=kept.get("spelling")))
    rest = [encode_call(call, signed=signed, spelling=kept.get("spelling")) for call in calls]
    return [*parts, *([] if has_text else encode_text(text)), *rest]


def _sign_foreign_calls(parts: list[JsonDict]) -> list[JsonDict]:
    """The parts of a turn. Without any signature, the first call gets the one that Google documents for calls that the
    model did not make; Gemini 3 refuses the turn otherwise.
    """
    first = next((at for at, part in enumerate(parts) if "functionCall" in part or "function_call" in part), None)
    if first is None or any(map(is_signed, parts)):
        return parts
    key = "thoughtSignature" if "functionCall" in parts[first] else "thought_signature"
    return [*parts[:first], {**parts[first], key: _FOREIGN_CALL}, *parts[first + 1 :]]


def _wants_signatures(model: str) -> bool:
    """Whether a model refuses calls without a signature: Gemini 3 and later, which ``-latest`` stands for."""
    found = _FAMILY.search(model)
    return int(found[1]) >= 3 if found is not None else _LATEST.search(model) is not None


def is_older(model: str) -> bool:
    """Whether a model is known to be from before Gemini 3."""
    found = _FAMILY.search(model)
    return found is not None and int(found[1]) < 3


def _differ_in_family(model: str, other: str) -> bool:
    """Whether two models are known to be of different families.

    Some names do not show it (``gemini-flash-latest``, an endpoint). Then signatures are sent: one too many does less harm
    than one too few.
    """
    one, another = _FAMILY.search(model), _FAMILY.search(other)
    return one is not None and another is not None and one[1] != another[1]
