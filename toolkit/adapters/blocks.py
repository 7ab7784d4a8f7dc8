"""Messages that are lists of blocks, as Anthropic and Bedrock have them: encoding, decoding and putting streams together.

Where the neutral form cannot express the content of a message, the decoder keeps a ``layout``: an entry for each block, in
order. An entry may also hold a difference (``lossless``).

=====================  ===================================================================================
``{"native": block}``  a block the neutral form has no field for (thinking, a tool that the server runs)
``{"text": length}``   the next ``length`` characters of the text
``{"part": type}``     the next content block
``{"call": id}``       the call with this id
=====================  ===================================================================================

The neutral value wins: a changed text goes where the first text was, removed calls are not sent, new calls come last, and
native blocks keep their places among all of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolkit.adapters.lossless import (
    add_difference,
    has_difference,
    keep_difference,
    provider_metadata,
    restore,
    set_provider_metadata,
)
from toolkit.adapters.streaming import UNFINISHED_TEXT
from toolkit.adapters.values import JsonDict, has_broken_arguments, plain_list
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}


# -- encoding ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWriter:
    """How one provider writes each kind of block.

    ``id`` returns the id a call is sent with: ids of other providers may have characters that this one refuses.
    ``about_text`` names the keys of a text block that no longer hold once the text is changed (citations). With
    ``bare_text`` a message's content may be a string; ``alternating`` providers refuse two messages of one role in a row.
    """

    provider: str
    id: Callable[[str], str]
    text: Callable[[str], JsonDict]
    part: Callable[[ContentBlock], JsonDict]
    call: Callable[[ToolCall], JsonDict]
    result: Callable[[ToolResult, JsonDict], JsonDict]
    about_text: frozenset[str]
    bare_text: bool
    alternating: bool


def encode_turns(writer: BlockWriter, messages: Iterable[ChatMessage]) -> list[JsonDict]:
    """The messages, with the results of a turn's calls together, first in the message right after the calls."""
    turns: list[JsonDict] = []
    has_results = False
    previous: ChatMessage | None = None
    for message in _move_results_to_calls(messages):
        kept = provider_metadata(message.metadata, writer.provider)
        role, content = _encode_message(writer, message, kept)
        if role == "assistant" and not content and "layout" not in kept:
            continue  # an empty answer; both APIs refuse a message without content
        is_result = isinstance(message, ToolResultMessage)
        joins = is_result or (joins_previous(writer, has_results, previous, message) and not kept.get("apart"))
        previous = message
        if joins and turns and turns[-1]["role"] == role:
            before = _as_blocks(writer, turns[-1].get("content", []))
            turns[-1]["content"] = [*before, *_as_blocks(writer, content)]
            has_results = has_results or is_result
        else:
            turns.append(restore({"role": role, "content": content}, kept.get("turn", {})))
            has_results = is_result
    return turns


def _move_results_to_calls(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """The messages with every result moved up to its call; results without a known call stay where they are.

    Calls in several messages, one right after the other, count as one turn: their results follow the last.
    """
    order = list(messages)
    owners: dict[str, int] = {}
    ends: dict[int, int] = {}
    answers: dict[int, list[ChatMessage]] = {}
    moved: set[int] = set()
    begin = 0
    for at, message in enumerate(order):
        if isinstance(message, AssistantToolCallMessage):
            begin = begin if at > 0 and _continues_turn(order[at - 1], message) else at
            ends[begin] = at
            owners.update((call.id, begin) for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage) and message.result.tool_call_id in owners:
            answers.setdefault(ends[owners[message.result.tool_call_id]], []).append(message)
            moved.add(at)
    for at, message in enumerate(order):
        if at not in moved:
            yield message
            yield from answers.get(at, ())


def joins_previous(writer: BlockWriter, has_results: bool, previous: ChatMessage | None, message: ChatMessage) -> bool:
    """Whether a message goes into the encoded one before it, provided both have the same role.

    :param has_results: whether the encoded one has results in it.
    """
    is_users = isinstance(message, TextMessage) and message.role == "user"
    return writer.alternating or (has_results and is_users) or _continues_turn(previous, message)


def _continues_turn(previous: ChatMessage | None, message: ChatMessage) -> bool:
    """Whether the calls of one turn are in both messages: providers want no result and no text between them."""
    has_only_calls = isinstance(message, AssistantToolCallMessage) and not message.content
    return has_only_calls and isinstance(previous, AssistantToolCallMessage)


def _encode_message(writer: BlockWriter, message: ChatMessage, kept: JsonDict) -> tuple[str, str | list[JsonDict]]:
    """The role and the content of a message."""
    if isinstance(message, AssistantToolCallMessage):
        return "assistant", arrange_blocks(writer, message.content, message.tool_calls, kept)
    if isinstance(message, TextMessage):
        return message.role, encode_content(writer, message.content, kept)
    result = replace(message.result, tool_call_id=writer.id(message.result.tool_call_id))
    return "user", [restore(writer.result(result, kept), kept)]


def encode_content(writer: BlockWriter, content: str | Sequence[ContentBlock], kept: JsonDict) -> str | list[JsonDict]:
    """Content without calls: a string if it came as one and the provider accepts that, else blocks."""
    if isinstance(content, str) and writer.bare_text and "layout" not in kept:
        return content
    return arrange_blocks(writer, content, (), kept)


def arrange_blocks(
    writer: BlockWriter, content: str | Sequence[ContentBlock], calls: Sequence[ToolCall], kept: JsonDict
) -> list[JsonDict]:
    """The blocks of a message in the order of its layout; without a layout, the content and then the calls."""
    layout: list[JsonDict] = kept.get("layout", [])
    slots = [entry for entry in layout if "text" in entry or "part" in entry]
    filled = iter(_fill_slots(writer, content, slots, kept.get("digest")))
    unplaced = [] if slots else _encode_blocks(writer, content)
    waiting = list(calls)
    made: list[JsonDict] = []
    for entry in layout:
        if "native" in entry:
            made.append(entry["native"])
        elif "call" in entry:
            made += unplaced
            unplaced = []
            call = next((call for call in waiting if call.id == entry["call"]), None)
            if call is not None:
                waiting.remove(call)
                made.append(encode_call_block(writer, call))
        else:
            made += next(filled)
    return [*made, *unplaced, *(encode_call_block(writer, call) for call in waiting)]


def encode_call_block(writer: BlockWriter, call: ToolCall) -> JsonDict:
    """The block of a call, with what only its metadata knows."""
    made = writer.call(replace(call, id=writer.id(call.id)))
    whole: JsonDict = restore(made, provider_metadata(call.metadata, writer.provider))
    return whole


def call_input(call: ToolCall) -> JsonDict:
    """The arguments of a call. ``input`` must be an object, so text that is not JSON is wrapped as Anthropic asks for it."""
    return {"INVALID_JSON": call.raw_arguments} if has_broken_arguments(call) else call.arguments


def _fill_slots(
    writer: BlockWriter, content: str | Sequence[ContentBlock], slots: list[JsonDict], digest: object
) -> list[list[JsonDict]]:
    """The blocks that go into each place of a text or part."""
    if not slots:
        return []
    if isinstance(content, str) and all("text" in slot for slot in slots):
        if sum(slot["text"] for slot in slots) == len(content) and digest in (None, text_digest(content)):
            return [[block] for block in _slice_text(writer, content, slots)]
        whole: JsonDict = restore(writer.text(content), slots[0])
        block = {key: value for key, value in whole.items() if key not in writer.about_text}
        return [[block] if content else [], *([] for _ in slots[1:])]
    if not isinstance(content, str) and all("part" in slot for slot in slots):
        return _place_parts(writer, content, slots)
    return [_encode_blocks(writer, content), *([] for _ in slots[1:])]


def _slice_text(writer: BlockWriter, content: str, slots: list[JsonDict]) -> Iterator[JsonDict]:
    begin = 0
    for slot in slots:
        end = begin + slot["text"]
        yield restore(writer.text(content[begin:end]), slot)
        begin = end


def _place_parts(writer: BlockWriter, content: Sequence[ContentBlock], slots: list[JsonDict]) -> list[list[JsonDict]]:
    made: list[list[JsonDict]] = [[] for _ in slots]
    for at, block in enumerate(content):
        slot = slots[at] if at < len(slots) and slots[at]["part"] == block.type else {}
        made[min(at, len(slots) - 1)].append(restore(writer.part(block), slot))
    return made


def _encode_blocks(writer: BlockWriter, content: str | Sequence[ContentBlock]) -> list[JsonDict]:
    if isinstance(content, str):
        return [writer.text(content)] if content else []
    return [writer.part(block) for block in content]


def _as_blocks(writer: BlockWriter, content: str | list[JsonDict]) -> list[JsonDict]:
    return _encode_blocks(writer, content) if isinstance(content, str) else content


# -- decoding ------------------------------------------------------------------------------------------------------------


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


def text_digest(text: str) -> str:
    """A short digest, to find out whether a text has changed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


# -- blocks in pieces, put together by index and id, never by their position in a list -----------------------------------


@dataclass(slots=True)
class GrowingBlock:
    """A block so far. ``kind`` says which pieces belong to it; ``arguments`` are the pieces of a call's argument text.

    ``is_replaceable``: the answer was announced again. If the same index is announced again, that block replaces this one.
    ``is_repeated``: it was announced again after it was whole, or after its answer was. If pieces follow, they are the same
    once more.
    """

    answer: int
    index: int | None
    kind: str
    id: str | None
    block: JsonDict
    arguments: list[str] = field(default_factory=list)
    is_whole: bool = False
    is_repeated: bool = False
    is_replaceable: bool = False
    other_indexes: set[int] = field(default_factory=set)

    def is_at(self, index: int | None) -> bool:
        return index is None or index == self.index or index in self.other_indexes

    def add_arguments(self, piece: str) -> None:
        if self.is_repeated:
            self.arguments, self.is_repeated = [], False
        self.arguments.append(piece)

    def argument_text(self, given: object, is_cut: bool) -> str | None:
        """The text of a call's arguments; None if there is none, or if they were ``given`` whole at the start."""
        text = "".join(self.arguments)
        if given and not text:
            return None
        if is_cut and not self.is_whole and not text.strip():
            return UNFINISHED_TEXT
        return text if self.arguments else None


class BlocksInPieces:
    """A piece belongs to the last block of its index and kind; without an index, to the last block of its kind."""

    def __init__(self) -> None:
        self._blocks: Final[list[GrowingBlock]] = []
        self._answer = 0

    def next_answer(self) -> None:
        """What comes now belongs to another answer, whose blocks are numbered from the beginning."""
        self._answer += 1

    def repeat_answer(self) -> None:
        """The answer was announced again; what comes now may repeat its blocks."""
        for block in self._current():
            block.is_replaceable = True

    def drop_answer(self) -> None:
        """The answer was given up: another one comes in its place."""
        self._blocks[:] = [block for block in self._blocks if block.answer != self._answer]

    def start(self, index: int | None, kind: str, block: JsonDict, id: str | None = None) -> GrowingBlock:
        """Starts a block. One that is announced again goes on; another id at its index is another block."""
        known = self._find_known(index, kind, id)
        if known is None:
            self._blocks[:] = [one for one in self._blocks if not self._is_replaced(one, index)]
            known = GrowingBlock(self._answer, index, kind, id, block)
            self._blocks.append(known)
            return known
        known.id = known.id or id
        known.block = _merge_blocks(known.block, block)
        known.is_repeated = known.is_whole or known.is_replaceable
        if index is not None and index != known.index:
            known.other_indexes.add(index)
        return known

    def find_last(self, index: int | None, kind: str | None = None) -> GrowingBlock | None:
        """The block a piece belongs to, if it was announced; a piece of an unknown kind belongs to any."""
        found = [block for block in self._current() if block.is_at(index) and kind in (None, block.kind)]
        return found[-1] if found else None

    def stop(self, index: int | None) -> GrowingBlock | None:
        """Ends the last block of an index, and returns it."""
        block = self.find_last(index)
        if block is not None:
            block.is_whole = True
        return block

    def in_order(self) -> list[GrowingBlock]:
        """All blocks by index; those without one in the order they came."""

        def place(at: int) -> tuple[int, int, int]:
            block = self._blocks[at]
            return block.answer, at if block.index is None else block.index, at

        return [self._blocks[at] for at in sorted(range(len(self._blocks)), key=place)]

    def _current(self) -> list[GrowingBlock]:
        return [block for block in self._blocks if block.answer == self._answer]

    def _find_known(self, index: int | None, kind: str, id: str | None) -> GrowingBlock | None:
        """The block that is announced again: the one with this id, or one at this index that is still open."""
        if id:
            same = [block for block in self._current() if block.id == id and block.kind == kind]
            if same:
                return same[-1]
        known = None if index is None else self.find_last(index, kind)
        if known is None or known.is_whole or known.is_replaceable or (known.id and id):
            return None
        return known

    def _is_replaced(self, block: GrowingBlock, index: int | None) -> bool:
        return block.is_replaceable and block.answer == self._answer and index is not None and block.index == index


def _merge_blocks(known: JsonDict, again: JsonDict) -> JsonDict:
    """A block that is announced again: what was empty in it is taken from the second announcement."""
    made = {**again, **{key: value for key, value in known.items() if value not in (None, "", {})}}
    both = [key for key in made if isinstance(known.get(key), dict) and isinstance(again.get(key), dict)]
    return {**made, **{key: _merge_blocks(known[key], again[key]) for key in both}}
