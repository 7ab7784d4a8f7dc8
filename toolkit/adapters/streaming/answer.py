"""What all accumulators share: text and events as they come, wrong types, and how a stream ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final

from toolkit.adapters.answers.surrogates import WholeCharacters
from toolkit.adapters.plain_json import plain
from toolkit.adapters.streaming.call_events import CallEvents
from toolkit.adapters.streaming.expected_types import TypeReader
from toolkit.wire.events import AnswerEvent, ReasoningCame, TextCame, UsageCame
from toolkit.wire.query import QueryResult, Usage

# The last line of some servers' streams, which is not JSON.
_END: Final = "[DONE]"


class StreamedAnswer(ABC):
    """An answer that is put together from the events of one provider's stream.

    A subclass reads events in ``_read`` and reports what came with ``_say``, ``_think``, ``_count`` and ``_tell``.
    """

    def __init__(self) -> None:
        self._types = TypeReader()
        self._call_events = CallEvents()
        self._came: list[AnswerEvent] = []
        self._said = WholeCharacters()
        self._thought = WholeCharacters()
        self._counted = Usage()
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one event, as JSON or as an object of the SDK, and returns the text in it."""
        return "".join(one.text for one in self.feed_events(event) if isinstance(one, TextCame))

    def feed_events(self, event: object) -> list[AnswerEvent]:
        """Takes one event, as JSON or as an object of the SDK, and returns what came with it."""
        self._came = []
        raw = self._open(event)
        if raw != _END:
            self._read(self._types.json_object(raw, "an event"))
        return self._came

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
            self._came.append(TextCame(whole))

    def _think(self, text: str) -> None:
        if whole := self._thought.feed(text):
            self._came.append(ReasoningCame(whole))

    def _count(self, usage: Usage) -> None:
        if usage not in (self._counted, Usage()):
            self._counted = usage
            self._came.append(UsageCame(usage))

    def _tell(self, events: Iterable[AnswerEvent]) -> None:
        self._came += events
