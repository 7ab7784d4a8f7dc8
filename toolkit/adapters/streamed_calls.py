"""Calls that come in pieces: put together by index and id, never by their place in a list.

Servers differ in what they repeat, leave out and mix; whatever is here was sent by one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from toolkit.adapters.argument_text import call_from_text
from toolkit.wire.call import ToolCall


@dataclass(slots=True)
class CallPiece:
    """What one event says of a call; None is what it does not say."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class _Growing:
    index: int | None
    id: str | None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    said_arguments: bool = False
    metadata: dict[str, object] = field(default_factory=dict)


class CallsInPieces:
    """Feeds on pieces in the order they came; gives calls in the order of their index.

    A piece belongs to the call with its id; without a known id, to the last call of its index; with neither, to the last
    call at all. An id that is new where another stands, at the same index, begins another call.
    """

    def __init__(self) -> None:
        self._calls: Final[list[_Growing]] = []

    def feed(self, piece: CallPiece) -> None:
        call = self._owner(piece)
        if piece.id and not call.id:
            call.id = piece.id
        if piece.name:
            call.name = _joined(call.name, piece.name)
        if piece.arguments is not None:
            call.said_arguments = True
            call.pieces.append(piece.arguments)
        call.metadata.update(piece.metadata)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def calls(self) -> list[ToolCall]:
        """The calls so far. One that never got an id gets one made from its place."""
        order = sorted(
            range(len(self._calls)),
            key=lambda at: (self._calls[at].index if self._calls[at].index is not None else at, at),
        )
        return [self._call(number, self._calls[at]) for number, at in enumerate(order)]

    def _call(self, number: int, call: _Growing) -> ToolCall:
        text = "".join(call.pieces) if call.said_arguments else None
        return call_from_text(call.id or f"call_{number}", call.name, text, call.metadata or None)

    def _owner(self, piece: CallPiece) -> _Growing:
        if piece.id:
            for call in reversed(self._calls):
                if call.id == piece.id:
                    return call
        if piece.index is not None:
            for call in reversed(self._calls):
                if call.index == piece.index:
                    return call if not (piece.id and call.id) else self._new(piece)
            return self._new(piece)
        if (
            self._calls
            and not piece.id
            and not (piece.name and self._calls[-1].name and piece.name != self._calls[-1].name)
        ):
            return self._calls[-1]
        return self._new(piece)

    def _new(self, piece: CallPiece) -> _Growing:
        call = _Growing(piece.index, piece.id or None)
        self._calls.append(call)
        return call


def _joined(so_far: str, more: str) -> str:
    """A name comes whole, again and again, or in pieces; a repeated one is no piece."""
    return so_far if so_far == more else so_far + more
