"""Decodes the JSON of Bedrock's Converse, or boto3's form of it, into the neutral format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import BEDROCK as FINISH_REASONS
from toolkit.adapters.answers.finish_reasons import choose_finish_reason
from toolkit.adapters.answers.query_results import add_counts, count, error_result
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.bedrock.content import decode_part
from toolkit.adapters.bedrock.encode import CHOICES, PROVIDER, WRITER, encode_definition, sent_name
from toolkit.adapters.blocks.decode import (
    BlockReader,
    decode_answer,
    decode_result_content,
    decode_turns,
    drop_empty_texts,
)
from toolkit.adapters.blocks.encode import encode_call_block
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_object, plain_objects, plain_text
from toolkit.adapters.requests import decode_definitions
from toolkit.adapters.streaming.calls import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.adapters.strict.rules import BEDROCK
from toolkit.adapters.tool_choice import decode_tool_choice
from toolkit.adapters.values import call_from_arguments, compact
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

# What a caller may want to know about an answer.
_KEPT: Final = ("additionalModelResponseFields", "metrics", "trace", "usage")


def decode_tools(tools: object) -> list[AnyDefinition]:
    """The list ``toolConfig.tools``."""
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    spec = tool.get("toolSpec")
    schema = plain_object(spec.get("inputSchema")).get("json") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(schema, dict) or "name" not in spec:
        return None
    made = ToolDefinition(spec["name"], spec.get("description") or "", JsonObject(schema), spec.get("strict"))
    return mark_as_sent(made, PROVIDER, BEDROCK)


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode, given the same arguments, in the form of the tools' schemas.

    Call it for the calls of each answer. In the history, a call is still sent as the model wrote it.
    """
    return original_calls(calls, definitions, strict, PROVIDER, BEDROCK, sent_name, partial(encode_call_block, WRITER))


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    tool = found.get("tool") if isinstance(found, dict) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if found == {"tool": {"name": name}} else None


def decode_messages(messages: object) -> list[ChatMessage]:
    """The list ``messages``; ``decode_system`` decodes the field ``system``."""
    return decode_turns(READER, messages)


def decode_system(system: object) -> list[ChatMessage]:
    """The field ``system`` as a message for the start of the conversation."""
    found = plain_list(system)
    return decode_turns(READER, [{"role": "system", "content": found}]) if found else []


def decode_response(response: object) -> QueryResult:
    """The answer; one that is an error becomes ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    message = plain_object(plain_object(raw.get("output")).get("message"))
    if not isinstance(message.get("content"), list):
        return error_result(PROVIDER, raw)
    return build_result(raw)


def build_result(response: JsonDict, texts: Mapping[int, str] | None = None) -> QueryResult:
    """The result for a whole answer; ``texts`` has the argument texts of streamed calls, by the position of their block."""
    blocks = [_as_request(block) for block in plain_objects(response["output"]["message"]["content"])]
    content, calls, kept = decode_answer(READER, blocks, texts)
    reported = response.get("stopReason")
    reason = choose_finish_reason(reported, FINISH_REASONS, calls)
    if reason == "length" and blocks[-1:] and _decode_call(blocks[-1]) is not None:
        calls = refuse_last(calls)
    fields = {key: response[key] for key in _KEPT if response.get(key) is not None}
    metadata = {PROVIDER: {"finish_reason": reported, **fields, **drop_empty_texts(kept)}}
    usage = decode_usage(response.get("usage"))
    return QueryResult(content, calls, reason, usage, metadata, _decode_reasoning(blocks))


def _decode_reasoning(blocks: list[JsonDict]) -> list[Reasoning]:
    shown = [block["reasoningContent"] for block in blocks if isinstance(block.get("reasoningContent"), dict)]
    texts = [plain_text(plain_object(one.get("reasoningText")).get("text")) for one in shown]
    return [Reasoning(text, is_hidden=not text) for text in texts]


def _as_request(block: JsonDict) -> JsonDict:
    """A block of an answer without the types of texts and calls, which requests may not have."""
    use = block.get("toolUse")
    if isinstance(use, dict) and use.get("type") == "tool_use":
        return {**block, "toolUse": {key: value for key, value in use.items() if key != "type"}}
    return {key: value for key, value in block.items() if (key, value) != ("type", "text")}


def decode_usage(usage: object) -> Usage:
    """The provider's ``inputTokens`` are without what was read from a cache or written to one."""
    found = plain_object(usage)
    read, written = found.get("cacheReadInputTokens"), found.get("cacheWriteInputTokens")
    return Usage(
        add_counts(found.get("inputTokens"), read, written),
        count(found.get("outputTokens")),
        count(read),
        cache_write_tokens=count(written),
    )


def _decode_text(block: JsonDict) -> str | None:
    """The text of a block, also with citations around it."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    cited = plain_object(block.get("citationsContent")).get("content")
    if not isinstance(cited, list):
        return None
    return "".join(part["text"] for part in cited if isinstance(part, dict) and isinstance(part.get("text"), str))


def _decode_call(block: JsonDict) -> ToolCall | None:
    raw = block.get("toolUse")
    if not isinstance(raw, dict) or raw.get("type") == "server_tool_use":  # which Bedrock runs itself
        return None
    return call_from_arguments(plain_text(raw.get("toolUseId")), plain_text(raw.get("name")), raw.get("input"))


def _decode_result(block: JsonDict, names: Mapping[str, str]) -> tuple[ToolResult, JsonDict] | None:
    raw = block.get("toolResult")
    if not isinstance(raw, dict):
        return None
    id = str(raw.get("toolUseId") or "")
    name, failed = names.get(id, ""), raw.get("status") == "error"
    parts = [part for part in plain_list(raw.get("content")) if isinstance(part, dict)]
    data = parts[0]["json"] if len(parts) == 1 and "json" in parts[0] else None
    if isinstance(data, dict):
        return ToolResult(id, name, "error" if failed else "data", compact(data) if failed else data), {}
    return decode_result_content(READER, id, name, parts, failed=failed)


READER: Final = BlockReader(
    writer=WRITER, text=_decode_text, part=decode_part, call=_decode_call, result=_decode_result
)
