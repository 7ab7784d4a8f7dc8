"""Decodes Gemini's contents, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import GEMINI, GEMINI_BLOCKS, choose_finish_reason
from toolkit.adapters.answers.query_results import add_counts, count, error_result, keep_usage
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.gemini.content import (
    PROVIDER,
    decode_call,
    decode_parts,
    decode_result,
    encode_call,
    encode_result,
    find_spelling,
    takes_in_results,
)
from toolkit.adapters.gemini.encode import CHOICES, encode_tools, named_choice
from toolkit.adapters.gemini.key_case import detect_spelling, respell, to_camel_case
from toolkit.adapters.gemini.schema import from_openapi
from toolkit.adapters.lossless import add_difference, keep_difference, provider_metadata, set_provider_metadata
from toolkit.adapters.media.moved import IN_PLACE
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object, plain_objects
from toolkit.adapters.provider_names import MADE_ID
from toolkit.adapters.result_value import result_blocks
from toolkit.adapters.tool_choice import decode_tool_choice
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage

# What a caller may want to know about an answer, and the key of its model.
_KEPT_OF_CANDIDATE: Final = (
    "groundingMetadata", "citationMetadata", "urlContextMetadata", "safetyRatings", "finishMessage", "avgLogprobs",
    "logprobsResult", "continuationToken",
)  # fmt: skip
_KEPT: Final = ("responseId", "promptFeedback")


def decode_tools(tools: object) -> list[AnyDefinition]:
    """A list of tools, or one tool alone."""
    found: list[AnyDefinition] = []
    given = plain(tools)
    for tool in map(plain_object, [given] if isinstance(given, dict) else plain_list(given)):
        [key, *more] = [*tool] or [""]
        declarations: Any = tool.get(key)
        if to_camel_case({key: 0}).keys() != {"functionDeclarations"} or more or not _are_declarations(declarations):
            found.append(NativeTool(PROVIDER, JsonObject(tool)))
            continue
        spelling = {"list_spelling": "snake"} if key != "functionDeclarations" else {}
        for place, raw in enumerate(plain_list(declarations)):
            apart = place == 0 and bool(found) and isinstance(found[-1], ToolDefinition)
            found.append(_decode_declaration(raw, {**spelling, "apart": True} if apart else spelling))
    return found


def _are_declarations(value: Any) -> bool:
    """Whether this is a list of declarations; anything else under their key is native."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "name" in one for one in value)


def _decode_declaration(raw: JsonDict, kept: JsonDict) -> ToolDefinition:
    spelling = detect_spelling(raw)
    plain_raw = to_camel_case(raw)
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
    return keep_difference(made, PROVIDER, raw, next(iter(encoded.values()))[0])


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    config = found.get("functionCallingConfig") if isinstance(found, dict) else None
    names = config.get("allowedFunctionNames") if isinstance(config, dict) else None
    is_one_name = isinstance(names, list) and len(names) == 1 and found == named_choice(names)
    return names[0] if is_one_name and names else None


def decode_messages(contents: object) -> list[ChatMessage]:
    """Contents; a bare text, or a text in place of a content, is the user's."""
    reader = _ContentReader()
    found = plain(contents)
    for content in found if isinstance(found, list) else [found]:
        if isinstance(content, str):
            reader.messages.append(TextMessage("user", content))
        elif isinstance(content, dict):
            reader.read(content)
    return reader.messages


class _ContentReader:
    """Reads contents in order; calls without an id get one, and their results are matched by name and order."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        self._count = 0
        self._waiting: list[ToolCall] = []

    def read(self, content: JsonDict) -> None:
        parts = _content_parts(content)
        if content.get("role") == "model":
            text, calls, kept = decode_model_turn(parts, f"{MADE_ID}{self._count}")
            self._count += 1
            self._waiting = list(calls)
            metadata: dict[str, object] = {PROVIDER: kept} if kept else {}
            self.messages.append(
                AssistantToolCallMessage(text, calls, metadata) if calls else TextMessage("assistant", text, metadata)
            )
        else:
            role = content.get("role")
            self._read_user_parts(parts, {} if role == "user" else {"role": role})

    def _read_user_parts(self, parts: Sequence[JsonDict], role: JsonDict) -> None:
        """Each result becomes a message, and so does the content between results."""
        between: list[JsonDict] = []
        first = True
        for part in parts:
            if not isinstance(to_camel_case(part).get("functionResponse"), dict):
                between.append(part)
                continue
            if between:
                self._add(_decode_user_text(between), first, role)
                between, first = [], False
            self._add(self._decode_result(part), first, role)
            first = False
        if between or not parts:
            self._add(_decode_user_text(between), first, role)

    def _add(self, message: ChatMessage, first: bool, role: JsonDict) -> None:
        """Adds a message, which stores whether it starts a content if that does not follow from its kind."""
        before = self.messages[-1] if self.messages else None
        merges = isinstance(before, ToolResultMessage) and isinstance(message, ToolResultMessage)
        mark: JsonDict = {"apart": True} if first and merges else {"joined": True} if not first and not merges else {}
        mark |= role if first else {}
        if mark:
            kept = provider_metadata(message.metadata, PROVIDER)
            message = set_provider_metadata(message, PROVIDER, {**kept, **mark})
        self.messages.append(message)

    def _decode_result(self, part: JsonDict) -> ToolResultMessage:
        spelling = detect_spelling(part)
        raw = to_camel_case(part)["functionResponse"]
        made = decode_result({"functionResponse": raw}, raw.get("id") or self._take_waiting_id(raw.get("name")))
        kept: JsonDict = {"spelling": spelling} if spelling else {}
        if any(block.text is None and not takes_in_results(block) for block in result_blocks(made) or ()):
            kept |= IN_PLACE
        kept = add_difference(kept, part, respell(encode_result(made), spelling))
        return ToolResultMessage(made, {PROVIDER: kept} if kept else {})

    def _take_waiting_id(self, name: object) -> str:
        for call in self._waiting:
            if call.name == name:
                self._waiting.remove(call)
                return call.id
        return f"{MADE_ID}unknown"


def _decode_user_text(parts: list[JsonDict]) -> TextMessage:
    blocks, kept = decode_parts(parts)
    is_bare_text = len(parts) == 1 and not kept and blocks[0].text
    return TextMessage("user", blocks[0].text if is_bare_text else blocks, {PROVIDER: kept} if kept else {})  # type: ignore[arg-type]


def decode_model_turn(parts: Any, made_id: str) -> tuple[str, list[ToolCall], JsonDict]:
    """The text and the calls of the model in these parts, and what must be kept to write the same parts again."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    layout: list[JsonDict] = []
    spelling = find_spelling(parts)
    for part in parts:
        raw = to_camel_case(part)
        if isinstance(raw.get("functionCall"), dict):
            call = decode_call(raw, f"{made_id}-{len(calls)}")
            call = keep_difference(call, PROVIDER, part, encode_call(call, spelling=spelling))
            calls.append(call)
            layout.append({"call": call.id})
        elif isinstance(raw.get("text"), str) and not raw.get("thought"):
            texts.append(raw["text"])
            layout.append({"text": part})
        else:
            layout.append({"native": part})
    text = "".join(texts)
    plain_turn = [{"text": {"text": text}}] if text else []
    if parts and not spelling and layout == [*plain_turn, *({"call": call.id} for call in calls)]:
        return text, calls, {}
    return text, calls, {"layout": layout, **({"spelling": spelling} if spelling else {})}


def decode_response(response: object) -> QueryResult:
    """The first candidate of an answer; an answer without one is ``filtered`` or an ``error``."""
    raw = mend(to_camel_case(plain_object(response)))
    usage = decode_usage(raw.get("usageMetadata"))
    kept = {key: raw[key] for key in _KEPT if raw.get(key) is not None} | keep_usage(raw.get("usageMetadata"))
    candidates = plain_objects(raw.get("candidates"))
    if not candidates:
        error = raw.get("error") or raw.get("promptFeedback") or raw
        return error_result(PROVIDER, error, usage, _block_reason(raw) or "error", kept)
    candidate = min(candidates, key=lambda one: count(one.get("index")) or 0)
    parts = _content_parts(plain_object(candidate.get("content")))
    text, calls, layout = decode_model_turn(parts, f"{MADE_ID}{raw.get('responseId', '')}")
    reported = candidate.get("finishReason")
    reason = choose_finish_reason(reported, GEMINI, calls, _block_reason(raw))
    found = {"finish_reason": reported, "model": raw.get("modelVersion")}
    found |= {key: candidate.get(key) for key in _KEPT_OF_CANDIDATE}
    metadata = {**layout, **{key: value for key, value in found.items() if value is not None}, **kept}
    return QueryResult(text, calls, reason, usage, {PROVIDER: metadata}, _decode_reasoning(parts))


def _block_reason(raw: JsonDict) -> FinishReason | None:
    """``filtered`` if the prompt was blocked."""
    word = plain_object(raw.get("promptFeedback")).get("blockReason")
    return GEMINI_BLOCKS.get(str(word), "filtered") if word else None


def _content_parts(content: JsonDict) -> list[JsonDict]:
    return plain_objects(content.get("parts"))


def _decode_reasoning(parts: Sequence[JsonDict]) -> list[Reasoning]:
    texts = [part.get("text") for part in map(to_camel_case, parts) if part.get("thought") is True]
    return [Reasoning(text) for text in texts if isinstance(text, str) and text]


def decode_usage(usage: object) -> Usage:
    """The provider counts thoughts beside the answer, and what its own tools returned beside the prompt."""
    found = plain_object(usage)
    thoughts = found.get("thoughtsTokenCount")
    return Usage(
        add_counts(found.get("promptTokenCount"), found.get("toolUsePromptTokenCount")),
        add_counts(found.get("candidatesTokenCount"), thoughts),
        count(found.get("cachedContentTokenCount")),
        count(thoughts),
    )
