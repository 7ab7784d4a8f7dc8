"""Conversations whose messages are lists of blocks, written out: what Anthropic and Bedrock have in common.

A decoder keeps the ``layout`` of a message's content where the neutral form cannot tell it: an entry a block, in order.

==========================================  ================================================================
``{"native": block}``                       a block the neutral form has no word for (thinking, a server's tool)
``{"text": length, "residue": ...}``        the next so many characters of the text
``{"part": type, "residue": ...}``          the next content block
``{"call": id}``                            the call with this id
==========================================  ================================================================

The neutral value is the truth: a text that was changed goes where the first text was, calls that were taken away are
not sent, new ones come last, and native blocks keep their places beside all of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.result import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWriter:
    """How one provider writes each kind of block.

    ``id`` gives the id a call is sent with: those other providers made may have characters this one refuses.
    ``about_text`` names the keys of a text block that are void once the text is changed (citations). With ``bare_text``
    a message's content may be a string; ``alternating`` providers refuse two messages of one role in a row.
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
    """Short, to tell whether a text is still the one that came."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def encode_turns(writer: BlockWriter, messages: Iterable[ChatMessage]) -> list[JsonDict]:
    """The messages, with the results of one turn's calls together, first in the message right after the calls."""
    turns: list[JsonDict] = []
    answering = False
    previous: ChatMessage | None = None
    for message in results_first(messages):
        kept = own(message.metadata, writer.provider)
        role, content = _turn(writer, message, kept)
        if role == "assistant" and not content and "layout" not in kept:
            continue  # an answer that said nothing; both APIs refuse a message without content
        is_result = isinstance(message, ToolResultMessage)
        together = is_result or (joins(writer, answering, previous, message) and not kept.get("apart"))
        previous = message
        if together and turns and turns[-1]["role"] == role:
            before = _as_blocks(writer, turns[-1].get("content", []))
            turns[-1]["content"] = [*before, *_as_blocks(writer, content)]
            answering = answering or is_result
        else:
            turns.append(restored({"role": role, "content": content}, kept.get("turn")))
            answering = is_result
    return turns


def results_first(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """The messages with every result moved up to the calls it belongs to; results of no known call stay.

    Calls that come in several messages, one right after the other, count as one turn: their results follow the last.
    """
    order = list(messages)
    owners: dict[str, int] = {}
    ends: dict[int, int] = {}
    answers: dict[int, list[ChatMessage]] = {}
    moved: set[int] = set()
    begin = 0
    for at, message in enumerate(order):
        if isinstance(message, AssistantToolCallMessage):
            begin = begin if at > 0 and _goes_on(order[at - 1], message) else at
            ends[begin] = at
            owners.update((call.id, begin) for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage) and message.result.tool_call_id in owners:
            answers.setdefault(ends[owners[message.result.tool_call_id]], []).append(message)
            moved.add(at)
    for at, message in enumerate(order):
        if at not in moved:
            yield message
            yield from answers.get(at, ())


def joins(writer: BlockWriter, answering: bool, previous: ChatMessage | None, message: ChatMessage) -> bool:
    """Whether a message goes into the one before it, if that has the same role (and, ``answering``, results in it)."""
    is_users = isinstance(message, TextMessage) and message.role == "user"
    return writer.alternating or (answering and is_users) or _goes_on(previous, message)


def _goes_on(previous: ChatMessage | None, message: ChatMessage) -> bool:
    """Whether these are calls of one turn, in two messages: providers want no result, and no text, between them."""
    calling = isinstance(message, AssistantToolCallMessage) and not message.content
    return calling and isinstance(previous, AssistantToolCallMessage)


def _turn(writer: BlockWriter, message: ChatMessage, kept: JsonDict) -> tuple[str, str | list[JsonDict]]:
    if isinstance(message, AssistantToolCallMessage):
        return "assistant", arranged(writer, message.content, message.tool_calls, kept)
    if isinstance(message, TextMessage):
        return message.role, said(writer, message.content, kept)
    result = replace(message.result, tool_call_id=writer.id(message.result.tool_call_id))
    return "user", [restored(writer.result(result, kept), kept.get("residue"))]


def said(writer: BlockWriter, content: str | Sequence[ContentBlock], kept: JsonDict) -> str | list[JsonDict]:
    """What somebody says, as the provider takes it: a string where it came as one, else blocks."""
    if isinstance(content, str) and writer.bare_text and "layout" not in kept:
        return content
    return arranged(writer, content, (), kept)


def arranged(
    writer: BlockWriter, content: str | Sequence[ContentBlock], calls: Sequence[ToolCall], kept: JsonDict
) -> list[JsonDict]:
    """The blocks of a message in the order they are kept in; without that, what is said and then the calls."""
    layout: list[JsonDict] = kept.get("layout", [])
    slots = [entry for entry in layout if "text" in entry or "part" in entry]
    filled = iter(_filled(writer, content, slots, kept.get("digest")))
    unplaced = [] if slots else _plain(writer, content)
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
                made.append(encode_call(writer, call))
        else:
            made += next(filled)
    return [*made, *unplaced, *(encode_call(writer, call) for call in waiting)]


def encode_call(writer: BlockWriter, call: ToolCall) -> JsonDict:
    made = writer.call(replace(call, id=writer.id(call.id)))
    whole: JsonDict = restored(made, own(call.metadata, writer.provider).get("residue"))
    return whole


def _filled(
    writer: BlockWriter, content: str | Sequence[ContentBlock], slots: list[JsonDict], digest: object
) -> list[list[JsonDict]]:
    """For each place of a text or part, the blocks that go there."""
    if not slots:
        return []
    if isinstance(content, str) and all("text" in slot for slot in slots):
        if sum(slot["text"] for slot in slots) == len(content) and digest in (None, text_digest(content)):
            return [[block] for block in _sliced(writer, content, slots)]
        whole: JsonDict = restored(writer.text(content), slots[0].get("residue"))
        block = {key: value for key, value in whole.items() if key not in writer.about_text}
        return [[block] if content else [], *([] for _ in slots[1:])]
    if not isinstance(content, str) and all("part" in slot for slot in slots):
        return _parts(writer, content, slots)
    return [_plain(writer, content), *([] for _ in slots[1:])]


def _sliced(writer: BlockWriter, content: str, slots: list[JsonDict]) -> Iterator[JsonDict]:
    begin = 0
    for slot in slots:
        end = begin + slot["text"]
        yield restored(writer.text(content[begin:end]), slot.get("residue"))
        begin = end


def _parts(writer: BlockWriter, content: Sequence[ContentBlock], slots: list[JsonDict]) -> list[list[JsonDict]]:
    made: list[list[JsonDict]] = [[] for _ in slots]
    for at, block in enumerate(content):
        slot = slots[at] if at < len(slots) else {}
        left = slot.get("residue") if slot.get("part") == block.type else None
        made[min(at, len(slots) - 1)].append(restored(writer.part(block), left))
    return made


def _plain(writer: BlockWriter, content: str | Sequence[ContentBlock]) -> list[JsonDict]:
    if isinstance(content, str):
        return [writer.text(content)] if content else []
    return [writer.part(block) for block in content]


def _as_blocks(writer: BlockWriter, content: str | list[JsonDict]) -> list[JsonDict]:
    return _plain(writer, content) if isinstance(content, str) else content
