"""Decodes messages that are lists of blocks; ``blocks/encode.py`` says what is kept in their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from toolkit.adapters.blocks.encode import BlockWriter, arrange_blocks, encode_content, joins_previous, text_digest
from toolkit.adapters.lossless import (
    add_difference,
    has_difference,
    keep_difference,
    provider_metadata,
    set_provider_metadata,
)
from toolkit.adapters.plain_json import JsonDict, plain_list
from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReader:
    """How one provider's blocks are read; each function returns None for a block of another kind.

    A result comes with what must be kept to write it again.
    """

    writer: BlockWriter
    text: Callable[[JsonDict], str | None]
    part: Callable[[JsonDict], ContentBlock | None]
    call: Callable[[JsonDict], ToolCall | None]
    result: Callable[[JsonDict, Mapping[str, str]], tuple[ToolResult, JsonDict] | None]


def decode_turns(reader: BlockReader, messages: object) -> list[ChatMessage]:
    """One message can become several: each result is one, and so is the text between results."""
    names: dict[str, str] = {}
    decoded: list[ChatMessage] = []
    role, has_results = "", False
    for raw in plain_list(messages):
        if not isinstance(raw, dict):
            continue
        made = list(_decode_message(reader, raw, names))
        previous = decoded[-1] if decoded else None
        would_join = raw.get("role") == role and joins_previous(reader.writer, has_results, previous, made[0])
        made[0] = _keep_turn(reader.writer, made[0], raw, would_join)
        role, has_results = str(raw.get("role")), any(isinstance(one, ToolResultMessage) for one in made)
        decoded += made
    return decoded


def _keep_turn(writer: BlockWriter, first: ChatMessage, raw: JsonDict, would_join: bool) -> ChatMessage:
    """The first message of a turn, which keeps what belongs to the turn as a whole."""
    content = raw.get("content")
    blocks: Any = content if isinstance(content, str | list) else []
    role = "user" if isinstance(first, ToolResultMessage) else getattr(first, "role", "assistant")
    kept = {**provider_metadata(first.metadata, writer.provider)}
    turn = add_difference({}, raw, {"role": role, "content": blocks})
    if turn:
        kept["turn"] = turn
    if would_join and not isinstance(first, ToolResultMessage):
        kept["apart"] = True
    return set_provider_metadata(first, writer.provider, kept)


def _decode_message(reader: BlockReader, raw: JsonDict, names: dict[str, str]) -> Iterator[ChatMessage]:
    role = _ROLES.get(str(raw.get("role")), "user")
    content = raw.get("content")
    if isinstance(content, str):
        yield TextMessage(role, content)
        return
    blocks = [block for block in plain_list(content) if isinstance(block, dict)]
    if role == "assistant":
        text, calls, kept = decode_answer(reader, blocks)
        names.update((call.id, call.name) for call in calls)
        metadata: dict[str, object] = {reader.writer.provider: kept} if kept else {}
        yield AssistantToolCallMessage(text, calls, metadata) if calls else TextMessage(role, text, metadata)
        return
    yield from _decode_user_message(reader, role, blocks, names)


def _decode_user_message(
    reader: BlockReader, role: Role, blocks: list[JsonDict], names: dict[str, str]
) -> Iterator[ChatMessage]:
    between: list[JsonDict] = []
    for block in blocks:
        found = reader.result(block, names)
        if found is None:
            between.append(block)
            continue
        if between:
            yield _decode_text(reader, role, between)
            between = []
        result, kept = found
        kept = add_difference(kept, block, reader.writer.result(result, kept))
        yield ToolResultMessage(result, {reader.writer.provider: kept} if kept else {})
    if between or not blocks:
        yield _decode_text(reader, role, between)


def _decode_text(reader: BlockReader, role: Role, blocks: list[JsonDict]) -> TextMessage:
    content, kept = decode_content(reader, blocks)
    return TextMessage(role, content, {reader.writer.provider: kept} if kept else {})


def decode_answer(
    reader: BlockReader, blocks: Sequence[JsonDict], texts: Mapping[int, str] | None = None
) -> tuple[str, list[ToolCall], JsonDict]:
    """A model's text, its calls, and what must be kept.

    ``texts`` has the argument texts of streamed calls, by the position of their block.
    """
    said: list[str] = []
    calls: list[ToolCall] = []
    layout: list[JsonDict] = []
    for place, block in enumerate(blocks):
        call = reader.call(block)
        text = reader.text(block) if call is None else None
        if call is not None:
            # Without the text: text that is not JSON is not sent back, and must not count as a difference.
            encoded = reader.writer.call(replace(call, raw_arguments=None))
            call = keep_difference(call, reader.writer.provider, block, encoded)
            streamed = None if texts is None else texts.get(place)
            call = call if streamed is None else replace(call, raw_arguments=streamed)
            call = call if call.id else replace(call, id=f"call_{len(calls)}")
            calls.append(call)
            layout.append({"call": call.id})
        elif text is not None:
            said.append(text)
            layout.append(add_difference({"text": len(text)}, block, reader.writer.text(text)))
        else:
            layout.append({"native": block})
    content = "".join(said)
    if calls and arrange_blocks(reader.writer, content, calls, {}) == blocks:
        return content, calls, {}
    return content, calls, _keep_layout(reader.writer, content, layout, blocks)


def drop_empty_texts(kept: JsonDict) -> JsonDict:
    """What is kept of an answer, without empty texts: models send them, and their providers refuse them in requests."""
    layout = [entry for entry in kept.get("layout", ()) if entry.get("text") != 0]
    return {**kept, "layout": layout} if layout else {}


def decode_content(
    reader: BlockReader, blocks: Sequence[JsonDict], allow_media: bool = True
) -> tuple[str | list[ContentBlock], JsonDict]:
    """Content without calls, and what must be kept: one text if that is all there is, else content blocks."""
    parts = [reader.part(block) if allow_media else None for block in blocks]
    content_blocks = [part for part in parts if part is not None]
    if not allow_media or (len(content_blocks) <= 1 and all(part.type == "text" for part in content_blocks)):
        content, _, kept = decode_answer(replace(reader, call=lambda _: None), blocks)
        return content, kept
    layout = [
        {"native": block} if part is None else add_difference({"part": part.type}, block, reader.writer.part(part))
        for block, part in zip(blocks, parts, strict=True)
    ]
    return content_blocks, _keep_layout(reader.writer, content_blocks, layout, blocks)


def decode_result_content(
    reader: BlockReader, id: str, name: str, blocks: Sequence[JsonDict], *, failed: bool
) -> tuple[ToolResult, JsonDict]:
    """The result in these blocks, and what must be kept. A failed result is text only."""
    value, kept = decode_content(reader, blocks, allow_media=not failed)
    if isinstance(value, str):
        return ToolResult(id, name, "error" if failed else "text", value), kept
    return ToolResult(id, name, "multimodal", tuple(value)), kept


def _keep_layout(
    writer: BlockWriter, content: str | list[ContentBlock], layout: list[JsonDict], blocks: Sequence[JsonDict]
) -> JsonDict:
    if blocks and encode_content(writer, content, {}) == blocks:
        return {}
    texts = [entry for entry in layout if "text" in entry]
    if isinstance(content, str) and (len(texts) > 1 or any(map(has_difference, texts))):
        return {"layout": layout, "digest": text_digest(content)}
    return {"layout": layout}
