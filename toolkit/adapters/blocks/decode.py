"""Messages that are lists of blocks, read into the neutral form; see ``block_encode`` for what is kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from toolkit.adapters.blocks.encode import BlockWriter, arranged, joins, said, text_digest
from toolkit.adapters.lossless import own, residue
from toolkit.adapters.plain_json import JsonDict, plain_list
from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReader:
    """How one provider's blocks are read; each gives None for a block that is not of its kind.

    A result comes with what must be kept to write it again.
    """

    writer: BlockWriter
    text: Callable[[JsonDict], str | None]
    part: Callable[[JsonDict], ContentBlock | None]
    call: Callable[[JsonDict], ToolCall | None]
    result: Callable[[JsonDict, Mapping[str, str]], tuple[ToolResult, JsonDict] | None]


def decode_turns(reader: BlockReader, messages: object) -> list[ChatMessage]:
    """One message can become several: each result is one, and what is said beside the results another."""
    names: dict[str, str] = {}
    decoded: list[ChatMessage] = []
    role, answering = "", False
    for raw in plain_list(messages):
        if not isinstance(raw, dict):
            continue
        made = list(_messages(reader, raw, names))
        previous = decoded[-1] if decoded else None
        follows = raw.get("role") == role and joins(reader.writer, answering, previous, made[0])
        made[0] = _as_head(reader.writer, made[0], raw, follows)
        role, answering = str(raw.get("role")), any(isinstance(one, ToolResultMessage) for one in made)
        decoded += made
    return decoded


def _as_head(writer: BlockWriter, first: ChatMessage, raw: JsonDict, follows: bool) -> ChatMessage:
    """The first of a message's parts, which keeps what belongs to the message as a whole."""
    content = raw.get("content")
    blocks: Any = content if isinstance(content, str | list) else []
    role = "user" if isinstance(first, ToolResultMessage) else getattr(first, "role", "assistant")
    kept = {**own(first.metadata, writer.provider)}
    around = {**raw, "content": blocks} if isinstance(content, str | list) else raw
    left = residue(around, {"role": role, "content": blocks})
    if left is not None:
        kept["turn"] = left
    if follows and not isinstance(first, ToolResultMessage):
        kept["apart"] = True
    return replace(first, metadata={writer.provider: kept} if kept else {})


def _messages(reader: BlockReader, raw: JsonDict, names: dict[str, str]) -> Iterator[ChatMessage]:
    role = _ROLES.get(str(raw.get("role")), "user")
    content = raw.get("content")
    if isinstance(content, str):
        yield TextMessage(role, content)
        return
    blocks = [block for block in plain_list(content) if isinstance(block, dict)]
    if role == "assistant":
        text, calls, kept = read_answer(reader, blocks)
        names.update((call.id, call.name) for call in calls)
        metadata: dict[str, object] = {reader.writer.provider: kept} if kept else {}
        yield AssistantToolCallMessage(text, calls, metadata) if calls else TextMessage(role, text, metadata)
        return
    yield from _of_user(reader, role, blocks, names)


def _of_user(reader: BlockReader, role: Role, blocks: list[JsonDict], names: dict[str, str]) -> Iterator[ChatMessage]:
    beside: list[JsonDict] = []
    for block in blocks:
        found = reader.result(block, names)
        if found is None:
            beside.append(block)
            continue
        if beside:
            yield _text(reader, role, beside)
            beside = []
        result, kept = found
        left = residue(block, reader.writer.result(result, kept))
        whole = kept if left is None else {**kept, "residue": left}
        yield ToolResultMessage(result, {reader.writer.provider: whole} if whole else {})
    if beside or not blocks:
        yield _text(reader, role, beside)


def _text(reader: BlockReader, role: Role, blocks: list[JsonDict]) -> TextMessage:
    content, kept = read_said(reader, blocks)
    return TextMessage(role, content, {reader.writer.provider: kept} if kept else {})


def read_answer(
    reader: BlockReader, blocks: Sequence[JsonDict], texts: Mapping[int, str] | None = None
) -> tuple[str, list[ToolCall], JsonDict]:
    """What a model said, as one text; its calls; and what must be kept.

    ``texts`` has the argument texts of calls that were streamed, by the place of their block.
    """
    words: list[str] = []
    calls: list[ToolCall] = []
    layout: list[JsonDict] = []
    for place, block in enumerate(blocks):
        call = reader.call(block)
        text = reader.text(block) if call is None else None
        if call is not None:
            call = _with_residue(reader.writer, call, block)
            streamed = None if texts is None else texts.get(place)
            call = call if streamed is None else replace(call, raw_arguments=streamed)
            call = call if call.id else replace(call, id=f"call_{len(calls)}")
            calls.append(call)
            layout.append({"call": call.id})
        elif text is not None:
            words.append(text)
            layout.append(_entry({"text": len(text)}, residue(block, reader.writer.text(text))))
        else:
            layout.append({"native": block})
    content = "".join(words)
    if calls and arranged(reader.writer, content, calls, {}) == blocks:
        return content, calls, {}
    return content, calls, _kept(reader.writer, content, layout, blocks)


def to_send_again(kept: JsonDict) -> JsonDict:
    """What is kept of an answer: all but empty texts, which models say and their providers refuse to be sent."""
    layout = [entry for entry in kept.get("layout", ()) if entry.get("text") != 0]
    return {**kept, "layout": layout} if layout else {}


def read_said(
    reader: BlockReader, blocks: Sequence[JsonDict], media: bool = True
) -> tuple[str | list[ContentBlock], JsonDict]:
    """What is said to a model: a text where there is one at most, else content blocks (``media`` allowing)."""
    parts = [reader.part(block) if media else None for block in blocks]
    said_blocks = [part for part in parts if part is not None]
    if not media or (len(said_blocks) <= 1 and all(part.type == "text" for part in said_blocks)):
        content, _, kept = read_answer(replace(reader, call=lambda _: None), blocks)
        return content, kept
    layout = [
        {"native": block} if part is None else _entry({"part": part.type}, residue(block, reader.writer.part(part)))
        for block, part in zip(blocks, parts, strict=True)
    ]
    return said_blocks, _kept(reader.writer, said_blocks, layout, blocks)


def _kept(
    writer: BlockWriter, content: str | list[ContentBlock], layout: list[JsonDict], blocks: Sequence[JsonDict]
) -> JsonDict:
    if blocks and said(writer, content, {}) == blocks:
        return {}
    texts = [entry for entry in layout if "text" in entry]
    if isinstance(content, str) and (len(texts) > 1 or any("residue" in entry for entry in texts)):
        return {"layout": layout, "digest": text_digest(content)}
    return {"layout": layout}


def _entry(entry: JsonDict, left: JsonDict | None) -> JsonDict:
    return entry if left is None else {**entry, "residue": left}


def _with_residue(writer: BlockWriter, call: ToolCall, block: JsonDict) -> ToolCall:
    # Without the text: one that is no JSON has no place in what is sent back, and must not be taken for a difference.
    left = residue(block, writer.call(replace(call, raw_arguments=None)))
    return call if left is None else replace(call, metadata={writer.provider: {"residue": left}})
