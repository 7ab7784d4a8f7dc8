"""Gemini's contents, or the SDK's objects, into the neutral format."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from toolkit.adapters.gemini.content import (
    PROVIDER,
    call_of,
    call_part,
    media_of,
    media_part,
    result_of,
    result_part,
)
from toolkit.adapters.gemini.encode import encode_tools
from toolkit.adapters.gemini.key_case import camel, respelled, spelling_of
from toolkit.adapters.gemini.schema import from_openapi
from toolkit.adapters.lossless import residue
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.provider_names import MADE_ID
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage

# What the model wrote could not be read; every other word is a stop.
_UNREADABLE: Final = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE")
_REASONS: Final[dict[str, FinishReason]] = {"MAX_TOKENS": "length", **dict.fromkeys(_UNREADABLE, "error")}
_MODES: Final[dict[str, ToolChoice]] = {"AUTO": "auto", "NONE": "none", "ANY": "required"}


def decode_tools(tools: object) -> list[AnyDefinition]:
    found: list[AnyDefinition] = []
    for tool in map(plain_object, plain_list(tools)):
        [key, *more] = [*tool] or [""]
        declarations: Any = tool.get(key)
        if camel({key: 0}).keys() != {"functionDeclarations"} or more or not _are_declarations(declarations):
            found.append(NativeTool(PROVIDER, JsonObject(tool)))
            continue
        spelling = {"list_spelling": "snake"} if key != "functionDeclarations" else {}
        for place, raw in enumerate(plain_list(declarations)):
            apart = place == 0 and bool(found) and isinstance(found[-1], ToolDefinition)
            found.append(_definition(raw, {**spelling, "apart": True} if apart else spelling))
    return found


def _are_declarations(value: Any) -> bool:
    """Something else under their key is not ours to read."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "name" in one for one in value)


def _definition(raw: JsonDict, kept: JsonDict) -> ToolDefinition:
    spelling = spelling_of(raw)
    plain_raw = camel(raw)
    if spelling:
        kept = {**kept, "spelling": spelling}
    if "parameters" in plain_raw and "parametersJsonSchema" not in plain_raw:
        kept = {**kept, "openapi": True}
        parameters = from_openapi(plain_raw["parameters"])
    else:
        parameters = plain_raw.get("parametersJsonSchema") or {}
    made = ToolDefinition(
        plain_raw["name"], plain_raw.get("description") or "", JsonObject(parameters), metadata={PROVIDER: kept}
    )
    [encoded] = encode_tools([made])
    left = residue(raw, next(iter(encoded.values()))[0])
    whole = {**kept, "residue": left} if left is not None else kept
    return dataclasses.replace(made, metadata={PROVIDER: whole} if whole else {})


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    if found is None:
        return "auto"
    config = found.get("functionCallingConfig") if isinstance(found, dict) and len(found) == 1 else None
    if isinstance(config, dict):
        names = plain_list(config.get("allowedFunctionNames"))
        if config.keys() == {"mode"} and config["mode"] in _MODES:
            return _MODES[config["mode"]]
        if config.keys() == {"mode", "allowedFunctionNames"} and config["mode"] == "ANY" and len(names) == 1:
            return NamedTool(names[0])
    return NativeChoice(PROVIDER, found)


def decode_messages(contents: object) -> list[ChatMessage]:
    """Contents; a text alone, or in the place of a content, is what the user says."""
    reader = _Reader()
    found = plain(contents)
    for content in found if isinstance(found, list) else [found]:
        if isinstance(content, str):
            reader.messages.append(TextMessage("user", content))
        elif isinstance(content, dict):
            reader.read(content)
    return reader.messages


class _Reader:
    """Goes through contents; calls without an id get one, and their results find them by name and order."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        self._count = 0
        self._waiting: list[ToolCall] = []

    def read(self, content: JsonDict) -> None:
        parts = _parts(content)
        if content.get("role") == "model":
            text, calls, kept = model_turn(parts, f"{MADE_ID}{self._count}")
            self._count += 1
            self._waiting = list(calls)
            metadata: dict[str, object] = {PROVIDER: kept} if kept else {}
            self.messages.append(
                AssistantToolCallMessage(text, calls, metadata) if calls else TextMessage("assistant", text, metadata)
            )
        else:
            role = content.get("role")
            self._user(parts, {} if role == "user" else {"role": role})

    def _user(self, parts: Sequence[JsonDict], role: JsonDict) -> None:
        """Results are messages of their own, what the user says between them as well."""
        said: list[JsonDict] = []
        first = True
        for part in parts:
            if not isinstance(camel(part).get("functionResponse"), dict):
                said.append(part)
                continue
            if said:
                self._add(_said(said), first, role)
                said, first = [], False
            self._add(self._result(part), first, role)
            first = False
        if said or not parts:
            self._add(_said(said), first, role)

    def _add(self, message: ChatMessage, first: bool, role: JsonDict) -> None:
        """Notes whether the message begins a content, where that does not follow from what it is."""
        before = self.messages[-1] if self.messages else None
        merges = isinstance(before, ToolResultMessage) and isinstance(message, ToolResultMessage)
        mark: JsonDict = {"apart": True} if first and merges else {"joined": True} if not first and not merges else {}
        mark |= role if first else {}
        if mark:
            kept = message.metadata.get(PROVIDER)
            whole = {**(kept if isinstance(kept, dict) else {}), **mark}
            message = dataclasses.replace(message, metadata={PROVIDER: whole})
        self.messages.append(message)

    def _result(self, part: JsonDict) -> ToolResultMessage:
        spelling = spelling_of(part)
        raw = camel(part)["functionResponse"]
        made = result_of({"functionResponse": raw}, raw.get("id") or self._waiting_id(raw.get("name")))
        kept: JsonDict = {"spelling": spelling} if spelling else {}
        left = residue(part, respelled(result_part(made), spelling))
        whole = {**kept, "residue": left} if left is not None else kept
        return ToolResultMessage(made, {PROVIDER: whole} if whole else {})

    def _waiting_id(self, name: object) -> str:
        for call in self._waiting:
            if call.name == name:
                self._waiting.remove(call)
                return call.id
        return f"{MADE_ID}unknown"


def _said(parts: list[JsonDict]) -> TextMessage:
    blocks: list[ContentBlock] = []
    extras, natives = {}, {}
    spelling = next((found for found in map(spelling_of, parts) if found), None)
    for place, part in enumerate(parts):
        block = media_of(camel(part))
        if block is None:
            natives[str(place)] = part
            continue
        left = residue(part, respelled(media_part(block), spelling))
        if left is not None:
            extras[str(len(blocks))] = left
        blocks.append(block)
    kept = {"spelling": spelling, "parts": extras, "native_parts": natives}
    whole = {key: value for key, value in kept.items() if value}
    alone = len(parts) == 1 and not whole and blocks[0].text
    return TextMessage("user", blocks[0].text if alone else blocks, {PROVIDER: whole} if whole else {})  # type: ignore[arg-type]


def model_turn(parts: Any, made_id: str) -> tuple[str, list[ToolCall], JsonDict]:
    """What the model said and called in these parts, and what must be kept to make the same parts again."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    layout: list[JsonDict] = []
    spelling = next((found for found in map(spelling_of, parts) if found), None)
    for part in parts:
        raw = camel(part)
        if isinstance(raw.get("functionCall"), dict):
            call = call_of(raw, f"{made_id}-{len(calls)}")
            left = residue(part, call_part(call, spelling=spelling))
            if left is not None:
                kept = call.metadata.get(PROVIDER)
                whole = {**(kept if isinstance(kept, dict) else {}), "residue": left}
                call = ToolCall(call.id, call.name, call.arguments, {PROVIDER: whole})
            calls.append(call)
            layout.append({"call": call.id})
        elif isinstance(raw.get("text"), str) and not raw.get("thought"):
            texts.append(raw["text"])
            layout.append({"text": part})
        else:
            layout.append({"native": part})
    text = "".join(texts)
    plain_turn = [{"text": {"text": text}}] if text else []
    if not spelling and layout == [*plain_turn, *({"call": call.id} for call in calls)]:
        return text, calls, {}
    return text, calls, {"layout": layout, **({"spelling": spelling} if spelling else {})}


def decode_response(response: object) -> QueryResult:
    """The first candidate of an answer; an answer without one is ``finish_reason="error"``."""
    raw = camel(plain_object(response))
    usage = _usage(raw.get("usageMetadata"))
    candidates = [one for one in plain_list(raw.get("candidates")) if isinstance(one, dict)]
    if not candidates:
        why = raw.get("error") or raw.get("promptFeedback") or raw
        return QueryResult("", (), "error", usage, {PROVIDER: {"error": why}})
    candidate = min(candidates, key=lambda one: one.get("index") or 0)
    text, calls, kept = model_turn(
        _parts(plain_object(candidate.get("content"))), f"{MADE_ID}{raw.get('responseId', '')}"
    )
    word = candidate.get("finishReason")
    reason = _REASONS.get(str(word)) or ("tool_calls" if calls else "stop")
    whole = {**kept, "finish_reason": word, "model": raw.get("modelVersion")}
    return QueryResult(text, calls, reason, usage, {PROVIDER: {k: v for k, v in whole.items() if v is not None}})


def _parts(content: JsonDict) -> list[JsonDict]:
    return [part for part in plain_list(content.get("parts")) if isinstance(part, dict)]


def _usage(usage: object) -> Usage:
    found = plain_object(usage)
    return Usage(
        found.get("promptTokenCount"),
        found.get("candidatesTokenCount"),
        found.get("cachedContentTokenCount"),
        found.get("thoughtsTokenCount"),
    )
