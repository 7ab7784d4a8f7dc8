"""Decodes the JSON of Anthropic's messages, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import ANTHROPIC as FINISH_REASONS
from toolkit.adapters.answers.finish_reasons import choose_finish_reason
from toolkit.adapters.answers.query_results import add_counts, count, error_result
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.anthropic.content import decode_part
from toolkit.adapters.anthropic.encode import CHOICES, PROGRAM, PROVIDER, WRITER, encode_definition, sent_name
from toolkit.adapters.blocks.decode import (
    BlockReader,
    decode_answer,
    decode_result_content,
    decode_turns,
    drop_empty_texts,
)
from toolkit.adapters.blocks.encode import encode_call_block
from toolkit.adapters.callers import decode_callers
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object, plain_objects, plain_text
from toolkit.adapters.requests import decode_definitions
from toolkit.adapters.streaming.calls import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.adapters.strict.rules import ANTHROPIC
from toolkit.adapters.tool_choice import decode_tool_choice
from toolkit.adapters.values import call_from_arguments
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import ChatMessage
from toolkit.wire.output import OutputSchema
from toolkit.wire.query import QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

# What a caller may want to know about an answer, or must send with the next request (the container).
_KEPT: Final = ("id", "model", "stop_sequence", "stop_details", "container", "context_management", "usage")


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    schema = tool.get("input_schema")
    if tool.get("type") not in (None, "custom") or not isinstance(schema, dict) or "name" not in tool:
        return None
    made = ToolDefinition(
        tool["name"],
        tool.get("description") or "",
        JsonObject(schema),
        tool.get("strict"),
        defer_loading=tool.get("defer_loading") is True,
        callers=decode_callers(tool, PROGRAM),
    )
    return mark_as_sent(made, PROVIDER, ANTHROPIC)


def decode_strict_calls(
    calls: Sequence[ToolCall],
    definitions: Iterable[AnyDefinition],
    strict: bool | None = None,
    *,
    output: OutputSchema | None = None,
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode, given the same arguments, in the form of the tools' schemas.

    The driver does this itself. In the history, a call is still sent as the model wrote it.
    """
    return original_calls(
        calls, definitions, strict, PROVIDER, ANTHROPIC, sent_name, partial(encode_call_block, WRITER), output
    )


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    name = found.get("name") if isinstance(found, dict) else None
    return name if found == {"type": "tool", "name": name} else None


def decode_messages(messages: object) -> list[ChatMessage]:
    """The list ``messages``; ``decode_system`` decodes the field ``system``."""
    return decode_turns(READER, [_as_request(message) for message in plain_list(messages)])


def _as_request(message: object) -> object:
    """A message without the fields that only answers have: callers put the SDK's answers into the list as they are."""
    if isinstance(message, dict) and message.get("type") == "message":
        return {key: message[key] for key in ("role", "content") if key in message}
    return message


def decode_system(system: object) -> list[ChatMessage]:
    """The field ``system``, a text or blocks, as a message for the start of the conversation."""
    found = plain(system)
    return [] if not found else decode_turns(READER, [{"role": "system", "content": found}])


def decode_response(response: object) -> QueryResult:
    """The answer; one that is an error becomes ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    if not isinstance(raw.get("content"), list):
        return error_result(PROVIDER, raw.get("error", raw))
    return build_result(raw)


def build_result(message: JsonDict, texts: Mapping[int, str] | None = None) -> QueryResult:
    """The result for a whole message; ``texts`` has the argument texts of streamed calls, by the position of their block."""
    blocks = plain_objects(message["content"])
    content, calls, kept = decode_answer(READER, blocks, texts)
    reported = message.get("stop_reason")
    reason = choose_finish_reason(reported, FINISH_REASONS, calls)
    if reason == "length" and blocks[-1:] and _decode_call(blocks[-1]) is not None:
        calls = refuse_last(calls)
    fields = {key: message[key] for key in _KEPT if message.get(key) is not None}
    metadata = {PROVIDER: {"finish_reason": reported, **fields, **drop_empty_texts(kept)}}
    usage = decode_usage(message.get("usage"))
    return QueryResult(content, calls, reason, usage, metadata, _decode_reasoning(blocks))


def _decode_reasoning(blocks: list[JsonDict]) -> list[Reasoning]:
    found: list[Reasoning] = []
    for block in blocks:
        if block.get("type") == "thinking":
            text = plain_text(block.get("thinking"))
            found.append(Reasoning(text, is_hidden=not text))
        elif block.get("type") == "redacted_thinking":
            found.append(Reasoning(is_hidden=True))
    return found


def decode_usage(usage: object) -> Usage:
    """The provider's ``input_tokens`` are without what was read from a cache or written to one."""
    found = plain_object(usage)
    read, written = found.get("cache_read_input_tokens"), found.get("cache_creation_input_tokens")
    return Usage(
        add_counts(found.get("input_tokens"), read, written),
        count(found.get("output_tokens")),
        count(read),
        count(plain_object(found.get("output_tokens_details")).get("thinking_tokens")),
        count(written),
    )


def _decode_text(block: JsonDict) -> str | None:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def _decode_call(block: JsonDict) -> ToolCall | None:
    if block.get("type") != "tool_use":
        return None
    return call_from_arguments(plain_text(block.get("id")), plain_text(block.get("name")), block.get("input"))


def _decode_result(block: JsonDict, names: Mapping[str, str]) -> tuple[ToolResult, JsonDict] | None:
    if block.get("type") != "tool_result":
        return None
    id, content = str(block.get("tool_use_id") or ""), block.get("content")
    name, failed = names.get(id, ""), block.get("is_error") is True
    if not isinstance(content, list):
        text = content if isinstance(content, str) else ""
        return ToolResult(id, name, "error" if failed else "text", text), {}
    parts = [part for part in content if isinstance(part, dict)]
    return decode_result_content(READER, id, name, parts, failed=failed)


READER: Final = BlockReader(
    writer=WRITER, text=_decode_text, part=decode_part, call=_decode_call, result=_decode_result
)
