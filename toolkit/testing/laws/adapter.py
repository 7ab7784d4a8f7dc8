"""What an adapter is: the names that every package of ``toolkit.adapters`` has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from toolkit.wire import AnswerEvent, ChatMessage, QueryResult


class StreamAccumulator(Protocol):
    """Takes the events of a stream in their order; ``result`` is the answer so far."""

    def feed(self, event: object, /) -> str: ...

    def feed_events(self, event: object, /) -> Sequence[AnswerEvent]: ...

    def result(self) -> QueryResult: ...


class Adapter(Protocol):
    """Translates between the neutral format and that of a provider. A module with these functions is one."""

    @property
    def Accumulator(self) -> Callable[[], StreamAccumulator]: ...

    def encode_messages(self, messages: Any, /) -> Any: ...

    def decode_messages(self, messages: Any, /) -> list[ChatMessage]: ...

    def encode_tools(self, definitions: Any, /) -> Any: ...

    def decode_tools(self, tools: Any, /) -> Sequence[Any]: ...

    def encode_choice(self, choice: Any, /) -> Any: ...

    def decode_choice(self, choice: Any, /) -> Any: ...

    def decode_response(self, response: Any, /) -> QueryResult: ...


def read_stream(adapter: Adapter, events: Sequence[object]) -> QueryResult:
    """The answer that a whole stream gives."""
    answer = adapter.Accumulator()
    for event in events:
        answer.feed(event)
    return answer.result()


def essence(result: QueryResult) -> Any:
    """What must never change unnoticed: the text, and the calls with their arguments."""
    return result.content, [(call.name, call.arguments, call.unread_text) for call in result.tool_calls]
