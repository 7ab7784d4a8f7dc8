"""Limits how much tool output a model is shown: head and tail of one output, the newest outputs of a conversation.

Nothing is kept or read here; a note names the ref under which the cache keeps what is left out.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, NamedTuple

from pydantic_core import PydanticSerializationError, to_json

from toolkit.runtime.output import ABOUT_REPEATING
from toolkit.wire.call import ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import ChatMessage, ToolResultMessage, is_tool_result

MIN_HISTORY_TOKENS: Final = 20_000
MAX_HISTORY_TOKENS: Final = 100_000
# What providers charge for a picture, whatever its size in bytes.
MEDIA_TOKENS: Final = 2_000


# One output


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown of a text, and what is left out."""

    head: str
    tail: str
    size: int
    """Bytes of the whole text."""
    lines: int
    cut_bytes: int
    first_cut: int
    """The first line that is not complete."""
    last_cut: int

    @property
    def cut_lines(self) -> int:
        """How many lines are not complete."""
        return self.last_cut - self.first_cut + 1 if self.cut_bytes else 0


def fit_text(text: str, limit: int) -> Fitted:
    """Head and tail of a text, at most ``limit`` bytes of UTF-8 together, cut between lines.

    A line that would take more than half of either part is cut between two characters.

    >>> fit_text("one\\ntwo\\nthree\\nfour\\nfive\\n", 16)
    Fitted(head='one\\ntwo\\n', tail='five\\n', size=24, lines=5, cut_bytes=11, first_cut=3, last_cut=4)
    """
    size = _bytes(text)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    if size <= limit:
        return Fitted(text, "", size, lines, 0, 0, 0)
    head, tail = _head(text, limit // 2), _tail(text, limit - limit // 2)
    first = head.count("\n") + 1
    last = first + text.count("\n", len(head), len(text) - len(tail) - 1)
    return Fitted(head, tail, size, lines, size - _bytes(head) - _bytes(tail), first, last)


def shorten(text: str, limit: int, ref: str | None) -> str:
    """The text if it fits, else its head and tail with a note between them."""
    fitted = fit_text(text, limit)
    if not fitted.cut_bytes:
        return text
    border = "" if fitted.head.endswith("\n") or not fitted.head else "\n"
    return f"{fitted.head}{border}{note(fitted, ref)}\n{fitted.tail}"


def note(fitted: Fitted, ref: str | None) -> str:
    """A line for the model: how much is missing, and how to get it."""
    first, last = fitted.first_cut, fitted.last_cut
    where = f"line {first}" if first == last else f"lines {first}-{last}"
    missing = f"{fitted.cut_bytes} of {fitted.size} bytes omitted here, {where} of {fitted.lines}"
    if ref is None:
        return f"[{missing}; they could not be stored; {ABOUT_REPEATING}]"
    return (
        f'[{missing}; read all of it with tool_output_cache or search it with tool_output_cache_grep, ref_id "{ref}"]'
    )


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(_encode(text))


def _encode(text: str) -> bytes:
    # Lone surrogates, which Python text can hold, must not raise here.
    return text.encode("utf-8", "surrogatepass")


def _head(text: str, room: int) -> str:
    data = _encode(text[: room + 1])
    while room and _is_inside_character(data, room):
        room -= 1
    piece = data[:room].decode("utf-8", "surrogatepass")
    border = piece.rfind("\n") + 1
    return piece[:border] if border > len(piece) // 2 else piece


def _tail(text: str, room: int) -> str:
    data = _encode(text[-room - 1 :])
    start = len(data) - room
    while _is_inside_character(data, start):
        start += 1
    piece = data[start:].decode("utf-8", "surrogatepass")
    if text[len(text) - len(piece) - 1] == "\n":
        return piece
    border = piece.find("\n") + 1
    return piece[border:] if border <= len(piece) // 2 else piece


def _is_inside_character(data: bytes, at: int) -> bool:
    return at < len(data) and data[at] & 0xC0 == 0x80


# A conversation


def tokens(text: str) -> int:
    """A rough count of tokens, used if the caller gives none."""
    return _bytes(text) // 4


def history_budget(window: int) -> int:
    """How many tokens of a model's window tool outputs may take: a quarter, within limits."""
    return max(MIN_HISTORY_TOKENS, min(MAX_HISTORY_TOKENS, window // 4))


class _Trimmable(NamedTuple):
    at: int
    saving: int
    message: ToolResultMessage
    """The message that replaces it."""


def fit_history(
    messages: Sequence[ChatMessage], window: int, count: Callable[[str], int] = tokens
) -> list[ChatMessage]:
    """The conversation, with the oldest tool outputs replaced by their refs if all outputs together are too long.

    Never replaced: the newest results, errors, and outputs without a ref, which is what the cache tools return.

    Trimming goes down to half of the budget, and only when that frees at least a quarter of it. Between two trims the
    beginning of a growing conversation does not change, as providers' prompt caches need. Every trim depends only on
    earlier messages, so a loop may pass either the whole conversation each time or the result of the last call.

    :param window: the size of the model's window in tokens.
    :param count: counts the tokens of a text.
    """
    return FittedHistory(window, count).fit(messages)


class FittedHistory:
    """``fit_history`` for a conversation that grows: counts the tokens of what is new, unless earlier messages changed."""

    def __init__(self, window: int, count: Callable[[str], int] = tokens) -> None:
        self._budget: Final = history_budget(window)
        self._count: Final = count
        self._start()

    def _start(self) -> None:
        self._read: list[ChatMessage] = []
        self._fitted: list[ChatMessage] = []
        self._waiting: deque[_Trimmable] = deque()
        self._newest: list[_Trimmable] = []
        self._total = self._savings = 0

    def fit(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        if len(messages) < len(self._read) or not all(map(is_, messages, self._read)):
            self._start()
        for message in messages[len(self._read) :]:
            self._add(message)
        return list(self._fitted)

    def _add(self, message: ChatMessage) -> None:
        self._read.append(message)
        self._fitted.append(message)
        if not is_tool_result(message):
            self._waiting += self._newest
            self._savings += sum(item.saving for item in self._newest)
            self._newest.clear()
            return
        size = _size(message.result, self._count)
        self._total += size
        item = _trimmable(len(self._read) - 1, message, size, self._count)
        if item is not None:
            self._newest.append(item)
        if self._total > self._budget and 4 * self._savings >= self._budget:
            while self._waiting and 2 * self._total > self._budget:
                oldest = self._waiting.popleft()
                self._fitted[oldest.at] = oldest.message
                self._total -= oldest.saving
                self._savings -= oldest.saving


def _trimmable(at: int, message: ToolResultMessage, size: int, count: Callable[[str], int]) -> _Trimmable | None:
    """None for a result that stays, also because its replacement would be hardly shorter."""
    result = message.result
    if result.output_ref is None or result.kind == "error":
        return None
    words = (
        f"[output of {result.name}, about {size} tokens, omitted here; "
        f'read it with tool_output_cache, ref_id "{result.output_ref}"]'
    )
    left = count(words)
    if size < 2 * left:
        return None
    return _Trimmable(at, size - left, replace(message, result=replace(result, kind="text", value=words)))


def _size(result: ToolResult, count: Callable[[str], int]) -> int:
    value = result.value
    if isinstance(value, str):
        return count(value)
    if result.kind == "multimodal" and isinstance(value, Sequence):
        return sum(_block_size(block, count) for block in value if isinstance(block, ContentBlock))
    try:
        return count(to_json(value, serialize_unknown=True).decode())
    except PydanticSerializationError:  # half a character, which Python text can hold
        return count(json.dumps(value, default=str))


def _block_size(block: ContentBlock, count: Callable[[str], int]) -> int:
    return MEDIA_TOKENS if block.text is None else count(block.text)
