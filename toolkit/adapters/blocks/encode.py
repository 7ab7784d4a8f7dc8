"""Encodes conversations whose messages are lists of blocks.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.values import has_broken_arguments
from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.result import ToolResult


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


def text_digest(text: str) -> str:
    """A short digest, to find out whether a text has changed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


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
