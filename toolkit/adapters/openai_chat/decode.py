"""Chat completions' JSON, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.argument_text import call_from_text
from toolkit.adapters.lossless import own, residue
from toolkit.adapters.openai_chat.encode import PROVIDER, encode_call, encode_message, encode_tools, sent_name
from toolkit.adapters.openai_chat.parts import decode_parts, text_of
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_REASONS: Final[dict[str, FinishReason]] = {"length": "length", "error": "error", "model_length": "length"}
# What answers have and requests may not.
_ONLY_IN_ANSWERS: Final = frozenset({"role", "content", "tool_calls", "annotations", "audio", "function_call"})


def decode_tools(tools: object) -> list[AnyDefinition]:
    return [_definition(tool) for tool in plain_list(tools)]


def _definition(tool: JsonDict) -> AnyDefinition:
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict) or "name" not in function:
        return NativeTool(PROVIDER, JsonObject(tool))
    made = ToolDefinition(
        function["name"],
        function.get("description") or "",
        JsonObject(function.get("parameters") or {}),
        function.get("strict"),
    )
    made = mark_as_sent(made, PROVIDER)
    left = residue(tool, encode_tools([made])[0])
    return (
        made if left is None else replace(made, metadata={PROVIDER: {**own(made.metadata, PROVIDER), "residue": left}})
    )


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` with the same arguments sent in strict mode, as the tools themselves want them.

    Drivers do this by themselves. What the model wrote still is what goes into the history.
    """
    return original_calls(calls, definitions, strict, PROVIDER, sent_name, encode_call)


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    if found == "auto" or found is None:
        return "auto"
    if found == "none":
        return "none"
    if found == "required":
        return "required"
    function = found.get("function") if isinstance(found, dict) else None
    if isinstance(function, dict) and found == {"type": "function", "function": {"name": function.get("name")}}:
        return NamedTool(function["name"])
    return NativeChoice(PROVIDER, found)


def decode_messages(messages: object) -> list[ChatMessage]:
    names: dict[str, str] = {}
    decoded = []
    for raw in plain_list(messages):
        message = _message(raw, names)
        if isinstance(message, AssistantToolCallMessage):
            names.update((call.id, call.name) for call in message.tool_calls)
        decoded.append(message)
    return decoded


def _message(raw: JsonDict, names: dict[str, str]) -> ChatMessage:
    content = raw.get("content")
    parts, kept = decode_parts(content) if isinstance(content, list) else ([], {})
    made: ChatMessage
    if raw.get("role") == "tool":
        id = str(raw.get("tool_call_id", ""))
        value: Any = tuple(parts) if isinstance(content, list) else text_of(content)
        kind: Any = "multimodal" if isinstance(content, list) else "text"
        made = ToolResultMessage(
            ToolResult(id, names.get(id, str(raw.get("name") or "")), kind, value), {PROVIDER: kept}
        )
    elif raw.get("role") == "assistant" and raw.get("tool_calls"):
        made = AssistantToolCallMessage(text_of(content), decode_calls(raw["tool_calls"]))
    else:
        role = _ROLES.get(str(raw.get("role")), "user")
        made = TextMessage(role, parts if isinstance(content, list) else text_of(content), {PROVIDER: kept})
    return _with_residue(made, raw, kept if not isinstance(made, AssistantToolCallMessage) else {})


def _with_residue(made: ChatMessage, raw: JsonDict, kept: JsonDict) -> ChatMessage:
    left = residue(raw, encode_message(made))
    whole = {**kept, "residue": left} if left is not None else kept
    metadata: dict[str, object] = {PROVIDER: whole} if whole else {}
    if isinstance(made, TextMessage):
        return TextMessage(made.role, made.content, metadata)
    if isinstance(made, AssistantToolCallMessage):
        return AssistantToolCallMessage(made.content, made.tool_calls, metadata)
    return ToolResultMessage(made.result, metadata)


def decode_calls(calls: Iterable[JsonDict]) -> list[ToolCall]:
    return [_call(raw, number) for number, raw in enumerate(calls)]


def _call(raw: JsonDict, number: int) -> ToolCall:
    id = raw.get("id") or f"call_{number}"
    custom = raw.get("custom")
    if raw.get("type") == "custom" and isinstance(custom, dict):
        rest = {key: value for key, value in custom.items() if key != "name"}
        made = ToolCall(id, custom.get("name", ""), rest, {PROVIDER: {"type": "custom"}})
    else:
        function = plain_object(raw.get("function"))
        arguments = function.get("arguments")
        name = function.get("name") or ""
        if isinstance(arguments, dict):  # some servers forget to make it a text
            made = ToolCall(id, name, arguments)
        else:
            made = call_from_text(id, name, arguments)
    left = residue(raw, encode_call(made))
    if left is None:
        return made
    kept = made.metadata.get(PROVIDER)
    own = {**(kept if isinstance(kept, dict) else {}), "residue": left}
    return ToolCall(made.id, made.name, made.arguments, {PROVIDER: own}, made.raw_arguments)


def decode_response(response: object) -> QueryResult:
    """The first choice of an answer; an answer that is an error becomes ``finish_reason="error"``."""
    raw = plain_object(response)
    choices = plain_list(raw.get("choices"))
    if not choices:
        return QueryResult(
            "", (), "error", decode_usage(raw.get("usage")), {PROVIDER: {"error": raw.get("error", raw)}}
        )
    choice = choices[0]
    message = plain_object(choice.get("message"))
    calls = decode_calls(message.get("tool_calls") or ())
    return finished(text_of(message.get("content")), calls, choice.get("finish_reason"), raw.get("usage"), message)


def finished(content: str, calls: list[ToolCall], word: object, usage: object, message: JsonDict) -> QueryResult:
    """The result, with what the provider wants to see again in what follows: reasoning, signatures."""
    extra = {
        key: value for key, value in message.items() if key not in _ONLY_IN_ANSWERS and value not in (None, [], {})
    }
    kept: JsonDict = {"finish_reason": word, **({"extra": extra} if extra else {})}
    aside = {key: message[key] for key in ("annotations", "audio") if message.get(key)}
    reason = _REASONS.get(str(word)) or ("tool_calls" if calls else "stop")
    return QueryResult(content, calls, reason, decode_usage(usage), {PROVIDER: {**kept, **aside}})


def decode_usage(usage: object) -> Usage:
    found = plain_object(usage)
    return Usage(
        found.get("prompt_tokens"),
        found.get("completion_tokens"),
        plain_object(found.get("prompt_tokens_details")).get("cached_tokens"),
        plain_object(found.get("completion_tokens_details")).get("reasoning_tokens"),
    )
