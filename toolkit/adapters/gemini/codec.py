"""Gemini's contents as the neutral format and back: tools, messages and answers, as JSON or as the SDK's objects.

One content is one turn of the user or the model. Neutral messages are smaller: each result is one, and so is the text between
results. Where it does not follow from their kinds, a message stores whether it shares a content with the one before.

The service writes ``functionCall`` and standard base64, its SDKs write ``function_call`` and base64 for URLs. Decoders read
both, and what came in the SDKs' spelling goes back in it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.answers import (
    GEMINI,
    GEMINI_BLOCKS,
    add_counts,
    choose_finish_reason,
    count,
    error_result,
    keep_usage,
)
from toolkit.adapters.gemini.schema import from_openapi, to_openapi
from toolkit.adapters.history import group_results
from toolkit.adapters.lossless import (
    add_difference,
    keep_difference,
    keep_parts,
    provider_metadata,
    restore,
    restore_parts,
    set_provider_metadata,
)
from toolkit.adapters.media import (
    COMMON_IMAGES,
    IN_PLACE,
    PDF,
    as_text,
    is_own_file,
    is_textual,
    is_web_url,
    media_type,
    move_media,
    never,
    stand_in,
    standard_base64,
)
from toolkit.adapters.requests import (
    MADE_ID,
    ChoiceTable,
    decode_tool_choice,
    encode_tool_choice,
    own_native,
    provider_name,
)
from toolkit.adapters.values import (
    JsonDict,
    compact,
    mend,
    plain,
    plain_list,
    plain_object,
    plain_objects,
    plain_text,
    result_blocks,
)
from toolkit.wire.call import JsonObject, ToolCall, ToolResult
from toolkit.wire.content import BlockType, ContentBlock, ImageDetail
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolChoice, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage

PROVIDER: Final = "gemini"
CHOICES: Final[ChoiceTable] = {
    "auto": {"functionCallingConfig": {"mode": "AUTO"}},
    "none": {"functionCallingConfig": {"mode": "NONE"}},
    "required": {"functionCallingConfig": {"mode": "ANY"}},
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
# The model family that signatures are bound to: ``3`` in ``models/gemini-3-pro-preview``.
_FAMILY: Final = re.compile(r"gemini-(\d+)(?!\d)")
_LATEST: Final = re.compile(r"gemini-[a-z-]*latest\b")
_FOREIGN_CALL: Final = "skip_thought_signature_validator"
_IMAGES: Final = COMMON_IMAGES | {"image/heic", "image/heif"}
_IN_RESULTS: Final = frozenset({"image/png", "image/jpeg", "image/webp", PDF, "text/plain"})
# The service's own store of files, which nobody else can read.
_OWN_FILES: Final = "https://generativelanguage.googleapis.com/"
_RESOLUTIONS: Final[dict[ImageDetail | None, str]] = {"low": "MEDIA_RESOLUTION_LOW", "high": "MEDIA_RESOLUTION_HIGH"}
# What a caller may want to know about an answer, and the key of its model.
_KEPT_OF_CANDIDATE: Final = (
    "groundingMetadata", "citationMetadata", "urlContextMetadata", "safetyRatings", "finishMessage", "avgLogprobs",
    "logprobsResult", "continuationToken",
)  # fmt: skip
_KEPT: Final = ("responseId", "promptFeedback")
# The JSON below these keys belongs to tools and users; its keys are not respelled.
_FOREIGN: Final = frozenset({"args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema"})
_MEDIA: Final = frozenset({"inlineData", "inline_data"})
_FOR_URLS: Final = str.maketrans("+/", "-_")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


# -- tools ---------------------------------------------------------------------------------------------------------------


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, _NAME)


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


def encode_choice(choice: ToolChoice) -> Any:
    """The ``toolConfig``."""
    return encode_tool_choice(choice, PROVIDER, CHOICES, lambda name: named_choice([sent_name(name)]))


def named_choice(names: list[str]) -> Any:
    """The ``toolConfig`` that allows these tools only."""
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names}}


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    config = found.get("functionCallingConfig") if isinstance(found, dict) else None
    names = config.get("allowedFunctionNames") if isinstance(config, dict) else None
    is_one_name = isinstance(names, list) and len(names) == 1 and found == named_choice(names)
    return names[0] if is_one_name and names else None


# -- messages to contents ------------------------------------------------------------------------------------------------


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


# -- signatures of thoughts, which are bound to a family of models -------------------------------------------------------


def is_older(model: str) -> bool:
    """Whether a model is known to be from before Gemini 3."""
    found = _FAMILY.search(model)
    return found is not None and int(found[1]) < 3


def _wants_signatures(model: str) -> bool:
    """Whether a model refuses calls without a signature: Gemini 3 and later, which ``-latest`` stands for."""
    found = _FAMILY.search(model)
    return int(found[1]) >= 3 if found is not None else _LATEST.search(model) is not None


def _differ_in_family(model: str, other: str) -> bool:
    """Whether two models are known to be of different families.

    Some names do not show it (``gemini-flash-latest``, an endpoint). Then signatures are sent: one too many does less harm
    than one too few.
    """
    one, another = _FAMILY.search(model), _FAMILY.search(other)
    return one is not None and another is not None and one[1] != another[1]


def _sign_foreign_calls(parts: list[JsonDict]) -> list[JsonDict]:
    """The parts of a turn. Without any signature, the first call gets the one that Google documents for calls that the
    model did not make; Gemini 3 refuses the turn otherwise.
    """
    first = next((at for at, part in enumerate(parts) if "functionCall" in part or "function_call" in part), None)
    if first is None or any(map(is_signed, parts)):
        return parts
    key = "thoughtSignature" if "functionCall" in parts[first] else "thought_signature"
    return [*parts[:first], {**parts[first], key: _FOREIGN_CALL}, *parts[first + 1 :]]


def is_signed(part: JsonDict) -> bool:
    return "thoughtSignature" in part or "thought_signature" in part


def strip_signature(part: JsonDict) -> JsonDict:
    return {key: value for key, value in part.items() if key not in ("thoughtSignature", "thought_signature")}


# -- results of calls without an id: the service matches them to calls by name and order ---------------------------------


def order_results(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """The messages, with results of calls without ids in the order of these calls, and each with the name of its call."""
    calls: Sequence[ToolCall] = ()
    for message, results in group_results(messages):
        if message is not None:
            yield message
        if isinstance(message, AssistantToolCallMessage):
            calls = message.tool_calls
        yield from _order_by_calls(calls, results)


def _order_by_calls(calls: Sequence[ToolCall], results: list[ToolResultMessage]) -> Iterator[ToolResultMessage]:
    place = {call.id: at for at, call in reversed(list(enumerate(calls)))}
    made = [one for one in results if one.result.tool_call_id in place and one.result.tool_call_id.startswith(MADE_ID)]
    in_order = iter(sorted(made, key=lambda one: place[one.result.tool_call_id]))
    for result in results:
        id = result.result.tool_call_id
        chosen = next(in_order) if id in place and id.startswith(MADE_ID) else result
        known = place.get(chosen.result.tool_call_id)
        if known is not None and not chosen.result.name:
            chosen = dataclasses.replace(chosen, result=dataclasses.replace(chosen.result, name=calls[known].name))
        yield chosen


# -- contents to messages ------------------------------------------------------------------------------------------------


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


# -- answers -------------------------------------------------------------------------------------------------------------


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


# -- parts of calls and results ------------------------------------------------------------------------------------------


def _sent_id(id: str) -> JsonDict:
    return {} if id.startswith(MADE_ID) else {"id": id}


def encode_call(call: ToolCall, *, signed: bool = True, spelling: object = None) -> JsonDict:
    """The part of a call.

    :param signed: whether the signature of the model that made the call is sent with it.
    """
    kept = provider_metadata(call.metadata, PROVIDER)
    made: JsonDict = {"functionCall": {**_sent_id(call.id), "name": sent_name(call.name), "args": call.arguments}}
    if "signature" in kept:
        made["thoughtSignature"] = kept["signature"]
    whole: JsonDict = restore(respell(made, spelling), kept)
    return whole if signed else strip_signature(whole)


def decode_call(part: JsonDict, made_id: str) -> ToolCall:
    """The call in a part; ``made_id`` is its id if it has none."""
    raw = part["functionCall"]
    arguments = raw.get("args")
    kept = {"signature": part["thoughtSignature"]} if "thoughtSignature" in part else {}
    metadata: dict[str, object] | None = {PROVIDER: kept} if kept else None
    return ToolCall(
        plain_text(raw.get("id")) or made_id,
        plain_text(raw.get("name")),
        arguments if isinstance(arguments, dict) else {},
        metadata,
    )


def encode_result(result: ToolResult) -> JsonDict:
    """The part of a result, without what only the metadata of its message knows."""
    response, media = _split_media(result)
    made: JsonDict = {**_sent_id(result.tool_call_id), "name": sent_name(result.name), "response": response}
    if media:
        made["parts"] = [_encode_part(block) for block in media]
    return {"functionResponse": made}


def _split_media(result: ToolResult) -> tuple[JsonDict, list[ContentBlock]]:
    """The response object of a result, and the media that go next to it."""
    value = result.value
    if result.kind == "error":
        return {"error": value}, []
    blocks = result_blocks(result)
    if blocks is not None:
        media = [block for block in blocks if takes(block)]
        texts = [
            stand_in(block, PROVIDER) if block.text is None else block.text for block in blocks if block not in media
        ]
        return ({"output": "\n".join(texts)} if texts else {}), media
    if result.kind == "data" and isinstance(value, dict):
        return value, []
    return {"output": value}, []


def decode_result(part: JsonDict, id: str) -> ToolResult:
    """The result in a part, for the call with this id."""
    raw = part["functionResponse"]
    response, name = raw.get("response") or {}, raw.get("name") or ""
    parts = map(plain_object, plain_list(raw.get("parts")))
    media = [block for block in map(_decode_part, parts) if block is not None]
    if not isinstance(response, dict):
        return ToolResult(id, name, "data", response)
    if media:
        text = response.get("output") if list(response) == ["output"] else compact(response) if response else None
        lead = [ContentBlock("text", text=text)] if isinstance(text, str) else []
        return ToolResult(id, name, "multimodal", (*lead, *media))
    if list(response) == ["output"] and isinstance(response["output"], str):
        return ToolResult(id, name, "text", response["output"])
    if list(response) == ["error"] and isinstance(response["error"], str):
        return ToolResult(id, name, "error", response["error"])
    if list(response) == ["output"] and not isinstance(response["output"], dict):
        return ToolResult(id, name, "data", response["output"])
    return ToolResult(id, name, "data", response)


# -- parts of text and media ---------------------------------------------------------------------------------------------


def encode_text(text: str) -> list[JsonDict]:
    """The parts of a text; none if it is empty."""
    return [{"text": text}] if text else []


def encode_parts(content: str | Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for a text or blocks, with native parts and whatever else came with each part put back."""
    parts = encode_text(content) if isinstance(content, str) else [_encode_whole_part(block) for block in content]
    return restore_parts([respell(part, kept.get("spelling")) for part in parts], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    spelling = find_spelling(parts)
    blocks = [_decode_whole_part(to_camel_case(part)) for part in parts]
    encoded = [None if block is None else respell(_encode_whole_part(block), spelling) for block in blocks]
    kept = keep_parts(parts, encoded)
    if spelling:
        kept["spelling"] = spelling
    return [block for block in blocks if block is not None], kept


def takes(block: ContentBlock) -> bool:
    """Whether messages take this block of media."""
    return block.text is None and _encode_media(block) is not None


def takes_in_results(block: ContentBlock) -> bool:
    """Whether a result takes this block of media, in models that take media there at all."""
    return takes(block) and media_type(block) in _IN_RESULTS


def _encode_whole_part(block: ContentBlock) -> JsonDict:
    """A part of a message, which may say how closely the model looks at an image; parts of results may not."""
    made = _encode_part(block)
    if block.detail not in _RESOLUTIONS or "text" in made:
        return made
    return {**made, "mediaResolution": {"level": _RESOLUTIONS[block.detail]}}


def _decode_whole_part(part: JsonDict) -> ContentBlock | None:
    block, level = _decode_part(part), plain_object(part.get("mediaResolution")).get("level")
    if block is None or block.type != "image":
        return block
    return replace(block, detail=next((word for word, name in _RESOLUTIONS.items() if name == level), None))


def _encode_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"text": block.text}
    media = _encode_media(block)
    return {"text": stand_in(block, PROVIDER)} if media is None else media


def _encode_media(block: ContentBlock) -> JsonDict | None:
    kind = media_type(block)
    if not _is_readable(block.type, kind):
        return None
    if block.data is not None:
        return {"inlineData": {"mimeType": kind, "data": block.data}}
    if block.file_id is not None:
        uri = block.file_id if is_own_file(block, PROVIDER) else None
    else:
        uri = block.url if is_web_url(block) or (block.url or "").startswith("gs://") else None
    if uri is None:
        return None
    return {"fileData": {"fileUri": uri, **({"mimeType": kind} if block.media_type is not None else {})}}


def _is_readable(type: BlockType, kind: str) -> bool:
    """Whether models read files of this kind; the service refuses a request with any other."""
    if type == "image":
        return kind in _IMAGES
    return type == "audio" or kind == PDF or kind.startswith("video/") or is_textual(kind)


def _decode_part(part: JsonDict) -> ContentBlock | None:
    """The block of a part that is text or media, else None. A thought is neither.

    The name of a file is read and not written: the Gemini API refuses it.
    """
    if isinstance(part.get("text"), str) and not part.get("thought"):
        return ContentBlock("text", text=part["text"])
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        data, kind = standard_base64(inline["data"]), as_text(inline.get("mimeType"))
        return ContentBlock(_block_type(kind), kind, data=data, filename=as_text(inline.get("displayName")))
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        kind, uri, name = as_text(file.get("mimeType")), file["fileUri"], as_text(file.get("displayName"))
        if uri.startswith(_OWN_FILES):
            return ContentBlock(_block_type(kind), kind, file_id=uri, provider=PROVIDER, filename=name)
        return ContentBlock(_block_type(kind), kind, url=uri, filename=name)
    return None


def _block_type(kind: str | None) -> BlockType:
    family = (kind or "").partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"


# -- spelling ------------------------------------------------------------------------------------------------------------


def find_spelling(parts: Sequence[JsonDict]) -> str | None:
    """The spelling of parts."""
    return join_spellings(map(detect_spelling, parts))


def detect_spelling(raw: JsonDict) -> str | None:
    """The words ``snake``, if all keys are written so, and ``url``, if media are in base64 for URLs; None if neither."""
    is_snake = to_camel_case(raw) != raw and to_snake_case(to_camel_case(raw)) == raw
    words = [*(["snake"] if is_snake else []), *(["url"] if _respell_media(raw, standard_base64) != raw else [])]
    return " ".join(words) or None


def join_spellings(found: Iterable[str | None]) -> str | None:
    """The spelling of several parts."""
    words = {word for spelling in found if spelling for word in spelling.split()}
    return " ".join(sorted(words)) or None


def respell(encoded: Any, spelling: object) -> Any:
    """The encoded value in the detected spelling."""
    words = spelling.split() if isinstance(spelling, str) else ()
    if "url" in words:
        encoded = _respell_media(encoded, _url_base64)
    return to_snake_case(encoded) if "snake" in words else encoded


def to_camel_case(value: Any) -> Any:
    """The same value with keys as the service writes them.

    >>> to_camel_case({"function_call": {"args": {"a_b": 1}}})
    {'functionCall': {'args': {'a_b': 1}}}
    """
    if isinstance(value, dict):
        return {_camel(key): item if key in _FOREIGN else to_camel_case(item) for key, item in value.items()}
    return [to_camel_case(item) for item in value] if isinstance(value, list) else value


def to_snake_case(value: Any) -> Any:
    """The same value with keys as the SDKs write them."""
    if isinstance(value, dict):
        return {_snake(key): item if key in _FOREIGN else to_snake_case(item) for key, item in value.items()}
    return [to_snake_case(item) for item in value] if isinstance(value, list) else value


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest) if first else key


def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)


def _respell_media(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with the base64 of its media changed."""
    if isinstance(value, list):
        return [_respell_media(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {**item, "data": change(item["data"])}
        if key in _MEDIA and isinstance(item, dict) and isinstance(item.get("data"), str)
        else item
        if key in _FOREIGN
        else _respell_media(item, change)
        for key, item in value.items()
    }


def _url_base64(data: str) -> str:
    return data.translate(_FOR_URLS)
