"""What all accumulators share: reading events of any shape, reporting what comes, and putting calls together.

Servers differ in what they repeat, leave out and mix. Every case handled here was sent by one of them. A value of a wrong
type never raises. It is left out, and the first one is reported in the result: without that, a piece of the answer would be
missing and nobody would know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolkit.adapters.values import JsonDict, WholeCharacters, call_from_text, compact, mend_text, plain
from toolkit.wire.call import ToolCall
from toolkit.wire.query import (
    AnswerEvent,
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    QueryResult,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageUpdate,
)

# The last line of some servers' streams, which is not JSON.
_END: Final = "[DONE]"
UNFINISHED_TEXT: Final = "{"
"""The argument text of a call that was cut before its first byte. An empty text would be run as a call without arguments."""
_KINDS: Final = {
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


# -- an answer -----------------------------------------------------------------------------------------------------------


class StreamedAnswer(ABC):
    """An answer that is put together from the events of one provider's stream.

    A subclass reads events in ``_read`` and reports what came with ``_say``, ``_think``, ``_count`` and ``_tell``.
    """

    def __init__(self) -> None:
        self._types = TypeReader()
        self._call_events = CallEvents()
        self._events: list[AnswerEvent] = []
        self._said = WholeCharacters()
        self._thought = WholeCharacters()
        self._counted = Usage()
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one event, as JSON or as an object of the SDK, and returns the text in it."""
        return "".join(one.text for one in self.feed_events(event) if isinstance(one, TextDelta))

    def feed_events(self, event: object) -> list[AnswerEvent]:
        """Takes one event, as JSON or as an object of the SDK, and returns what came with it."""
        self._events = []
        raw = self._open(event)
        if raw != _END:
            self._read(self._types.json_object(raw, "an event"))
        return self._events

    def _open(self, event: object) -> Any:
        """The JSON of an event."""
        return plain(event)

    @abstractmethod
    def _read(self, event: dict[str, Any]) -> None: ...

    @abstractmethod
    def result(self) -> QueryResult: ...

    @property
    def _failure(self) -> object:
        """The error that ended the stream: the provider's, or the first value of a wrong type."""
        return self._types.error if self._error is None else self._error

    def _say(self, text: str) -> None:
        if whole := self._said.feed(text):
            self._events.append(TextDelta(whole))

    def _think(self, text: str) -> None:
        if whole := self._thought.feed(text):
            self._events.append(ReasoningDelta(whole))

    def _count(self, usage: Usage) -> None:
        if usage not in (self._counted, Usage()):
            self._counted = usage
            self._events.append(UsageUpdate(usage))

    def _tell(self, events: Iterable[AnswerEvent]) -> None:
        self._events += events


# -- values of expected types --------------------------------------------------------------------------------------------


class TypeReader:
    """Reads values of expected types. Null and absent values have no type; they are empty.

    >>> read = TypeReader()
    >>> read.text("hello", "delta.content"), read.text(7, "delta.content")
    ('hello', '')
    >>> read.error["message"]
    'the stream has a number at delta.content, where a text is expected. The rest of the answer was kept.'
    """

    def __init__(self) -> None:
        self.error: JsonDict | None = None

    def text(self, value: object, where: str) -> str:
        return self.maybe_text(value, where) or ""

    def maybe_text(self, value: object, where: str) -> str | None:
        if value is None or isinstance(value, str):
            return value
        self._note(value, where, "a text")
        return None

    def id(self, value: object, where: str) -> str | None:
        """An id. Some servers send numbers."""
        return str(value) if type(value) is int else self.name(value, where)

    def name(self, value: object, where: str) -> str | None:
        """The name of a tool, or a piece of it. It comes back in results and requests, so lone surrogates are replaced."""
        text = self.maybe_text(value, where)
        return None if text is None else mend_text(text)

    def index(self, value: object, where: str) -> int | None:
        if value is None or type(value) is int:
            return value
        self._note(value, where, "a number")
        return None

    def number(self, value: object, where: str) -> float | None:
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        self._note(value, where, "a number")
        return None

    def flag(self, value: object, where: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self._note(value, where, "a boolean")
        return False

    def json_object(self, value: object, where: str) -> JsonDict:
        if isinstance(value, dict):
            return value
        if value is not None:
            self._note(value, where, "an object")
        return {}

    def json_list(self, value: object, where: str) -> list[Any]:
        if isinstance(value, list):
            return value
        if value is not None:
            self._note(value, where, "a list")
        return []

    def objects(self, value: object, where: str) -> list[JsonDict]:
        """The objects in a list; anything else in it is left out."""
        items = self.json_list(value, where)
        return [found for at, item in enumerate(items) if (found := self.json_object(item, f"{where}[{at}]"))]

    def _note(self, value: object, where: str, expected: str) -> None:
        if self.error is None:
            found = _KINDS.get(type(value), "a foreign value")
            message = f"the stream has {found} at {where}, where {expected} is expected"
            self.error = {"type": "malformed_stream", "message": f"{message}. The rest of the answer was kept."}


# -- events of calls: each starts once, its argument text comes in pieces, and it completes once -------------------------


class CallEvents:
    """Remembers what was reported of each call, so that no event comes twice or too early."""

    def __init__(self) -> None:
        self._reported: dict[str, list[str]] = {}
        self._completed: Counter[str] = Counter()

    def grow(self, id: str, name: str, pieces: Sequence[str]) -> Iterator[AnswerEvent]:
        """What is new of a call with these pieces of argument text."""
        if id in self._completed and id not in self._reported:
            return
        if id not in self._reported:
            yield CallStarted(id, name)
        before = self._reported.setdefault(id, [])
        for piece in pieces[len(before) :]:
            before.append(piece)
            if piece:
                yield ArgumentsDelta(id, mend_text(piece))

    def complete(self, call: ToolCall) -> Iterator[AnswerEvent]:
        """The rest of a call whose arguments are complete."""
        if call.id not in self._reported:
            yield CallStarted(call.id, call.name)
        before = "".join(self._reported.pop(call.id, ()))
        text = _argument_text(call)
        if text.startswith(before) and text != before:
            yield ArgumentsDelta(call.id, text[len(before) :])
        self._completed[call.id] += 1
        yield CallCompleted(call)

    def complete_if_sound(self, call: ToolCall) -> Iterator[AnswerEvent]:
        """The same, unless the answer may have been cut in the middle of the call, or its end came before. For these, and
        for another call with the same id, ``complete_all`` follows."""
        if call.arguments and call.id not in self._completed:
            yield from self.complete(call)

    def complete_all(self, calls: Sequence[ToolCall]) -> Iterator[AnswerEvent]:
        """The rest of all calls that are not complete yet."""
        done = Counter(self._completed)
        for call in calls:
            if done[call.id]:
                done[call.id] -= 1
            else:
                yield from self.complete(call)


def _argument_text(call: ToolCall) -> str:
    """The text that pieces add up to: the provider's own, or the JSON of arguments that came as an object."""
    if call.raw_arguments is not None:
        return call.raw_arguments
    is_custom = any(isinstance(kept, dict) and kept.get("type") == "custom" for kept in call.metadata.values())
    text = call.arguments.get("input") if is_custom else None
    return text if isinstance(text, str) else compact(call.arguments)


# -- calls in pieces, put together by index and id, never by their position in a list ------------------------------------


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


def _join_names(so_far: str, more: str) -> str:
    """A name comes in pieces, or whole in every event; a repeated name is not a piece."""
    return so_far if so_far == more else so_far + more


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
