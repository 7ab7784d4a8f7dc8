"""Tool calls that are streamed in pieces, put together by index and id, never by their position in a list.

Servers differ in what they repeat, leave out and mix. Every case handled here was sent by one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from toolkit.adapters.argument_text import call_from_text
from toolkit.wire.call import ToolCall


@dataclass(slots=True)
class CallPiece:
    """What one event says about a call; None where it says nothing."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class _GrowingCall:
    index: int | None
    id: str | None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    has_arguments: bool = False
    metadata: dict[str, object] = field(default_factory=dict)


class CallsInPieces:
    """Takes pieces in the order they come; returns calls in the order of their index.

    A piece belongs to the call with its id; without a known id, to the last call with its index; with neither, to the last
    call of all. A new id at an index that already has another id starts another call.
    """

    def __init__(self) -> None:
        self._calls: Final[list[_GrowingCall]] = []

    def feed(self, piece: CallPiece) -> None:
        call = self._find_owner(piece)
        if piece.id and not call.id:
            call.id = piece.id
        if piece.name:
            call.name = _join_names(call.name, piece.name)
        if piece.arguments is not None:
            call.has_arguments = True
            call.pieces.append(piece.arguments)
        call.metadata.update(piece.metadata)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def calls(self) -> list[ToolCall]:
        """The calls so far. A call without an id gets one made from its position."""
        order = sorted(
            range(len(self._calls)),
            key=lambda at: (self._calls[at].index if self._calls[at].index is not None else at, at),
        )
        return [_finish_call(number, self._calls[at]) for number, at in enumerate(order)]

    def _find_owner(self, piece: CallPiece) -> _GrowingCall:
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

    def _start_call(self, piece: CallPiece) -> _GrowingCall:
        call = _GrowingCall(piece.index, piece.id or None)
        self._calls.append(call)
        return call


def _finish_call(number: int, call: _GrowingCall) -> ToolCall:
    text = "".join(call.pieces) if call.has_arguments else None
    return call_from_text(call.id or f"call_{number}", call.name, text, call.metadata or None)


def _join_names(so_far: str, more: str) -> str:
    """A name comes in pieces, or whole in every event; a repeated name is not a piece."""
    return so_far if so_far == more else so_far + more
