"""Tool calls that are streamed in pieces, put together by index and id, never by their position in a list.

Servers differ in what they repeat, leave out and mix. Every case handled here was sent by one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolkit.adapters.answers.surrogates import mend_text
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.values import call_from_text
from toolkit.wire.call import ToolCall

UNFINISHED_TEXT: Final = "{"
"""The argument text of a call that was cut before its first byte. An empty text would be run as a call without arguments."""


@dataclass(slots=True)
class CallPiece:
    """What one event says about a call; None where it says nothing. ``extra`` are keys that only the provider knows."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    extra: JsonDict = field(default_factory=dict)


@dataclass(slots=True)
class GrowingCall:
    """A call so far."""

    index: int | None
    id: str | None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: JsonDict = field(default_factory=dict)
    is_whole: bool = False

    @property
    def text(self) -> str | None:
        """The argument text; None if no event had any, not even an empty one."""
        return "".join(self.pieces) if self.pieces else None

    def as_call(self, number: int) -> ToolCall:
        """The call so far. One without an id gets one made from its position."""
        text = None if self.text is None else mend_text(self.text)
        return call_from_text(self.id or f"call_{number}", self.name, text)


class CallsInPieces:
    """Takes pieces in the order they come; returns calls in the order of their index.

    A piece belongs to the call with its id; without a known id, to the last call with its index; with neither, to the last
    call of all. A new id at an index that already has another id starts another call.
    """

    def __init__(self) -> None:
        self._calls: Final[list[GrowingCall]] = []

    def feed(self, piece: CallPiece) -> GrowingCall:
        """Takes a piece and returns the call it belongs to."""
        call = self._find_owner(piece)
        if piece.id and not call.id:
            call.id = piece.id
        if piece.name:
            call.name = _join_names(call.name, piece.name)
        if piece.arguments is not None:
            call.pieces.append(piece.arguments)
        call.extra = keep_earlier(call.extra, piece.extra)
        return call

    def __bool__(self) -> bool:
        return bool(self._calls)

    def in_order(self) -> list[GrowingCall]:
        """The calls so far, by index."""
        order = sorted(
            range(len(self._calls)),
            key=lambda at: (at if (index := self._calls[at].index) is None else index, at),
        )
        return [self._calls[at] for at in order]

    def calls(self) -> list[ToolCall]:
        """The calls so far as neutral values."""
        return [call.as_call(number) for number, call in enumerate(self.in_order())]

    def find(self, index: int | None) -> GrowingCall | None:
        """The last call with this index, or the last of all."""
        return next((call for call in reversed(self._calls) if index in (None, call.index)), None)

    def _find_owner(self, piece: CallPiece) -> GrowingCall:
        if piece.id:
            for call in reversed(self._calls):
                if call.id == piece.id:
                    return call
        if piece.index is not None:
            for call in reversed(self._calls):
                if call.index == piece.index:
                    return call if not (piece.id and call.id) else self._start_call(piece)
            return self._start_call(piece)
        if (
            self._calls
            and not piece.id
            and not (piece.name and self._calls[-1].name and piece.name != self._calls[-1].name)
        ):
            return self._calls[-1]
        return self._start_call(piece)

    def _start_call(self, piece: CallPiece) -> GrowingCall:
        call = GrowingCall(piece.index, piece.id or None)
        self._calls.append(call)
        return call


def keep_earlier(before: Any, more: Any) -> Any:
    """Values of unknown keys that come in several events: the first value of each key is kept, unless it was empty.

    >>> keep_earlier({"google": {"signature": "s"}}, {"google": {"signature": None, "turn": 2}})
    {'google': {'signature': 's', 'turn': 2}}
    """
    if isinstance(before, dict) and isinstance(more, dict):
        return {**more, **{key: keep_earlier(value, more.get(key)) for key, value in before.items()}}
    return more if before in (None, "", [], {}) else before


def refuse_unfinished(call: ToolCall) -> ToolCall:
    """A call that was cut. If none of its arguments came, it gets a text that is not JSON: it is refused when it is run."""
    has_arguments = call.unread_text is not None or call.arguments not in ({}, {"input": ""})
    return call if has_arguments else replace(call, raw_arguments=UNFINISHED_TEXT)


def refuse_last(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls of an answer that was cut at the token limit, which was in the middle of the last call."""
    return [*calls[:-1], *map(refuse_unfinished, calls[-1:])]


def _join_names(so_far: str, more: str) -> str:
    """A name comes in pieces, or whole in every event; a repeated name is not a piece."""
    return so_far if so_far == more else so_far + more
