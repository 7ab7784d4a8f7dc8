"""The script of a model: its turns in order, the requests it got, and what does not fit."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, NoReturn, TypeAlias

from typing_extensions import TypeVar

from toolkit.testing.transcript_text import render_messages
from toolkit.testing.turns import ScriptedTurn, failure, turn
from toolkit.wire.call import ToolCall
from toolkit.wire.events import (
    AnswerEvent,
    ArgumentsCame,
    CallCompleted,
    CallStarted,
    ReasoningCame,
    TextCame,
    UsageCame,
)
from toolkit.wire.message import ChatMessage, TextMessage, ToolResultMessage, is_tool_result
from toolkit.wire.query import QueryOptions, QueryResult, Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request that a scripted model got: the whole conversation, and the options it was sent with."""

    messages: Sequence[ChatMessage]
    options: QueryOptions

    @property
    def new_messages(self) -> list[ChatMessage]:
        """What came after the model's last message."""
        new: list[ChatMessage] = []
        for message in reversed(self.messages):
            if not (is_tool_result(message) or isinstance(message, TextMessage) and message.role != "assistant"):
                break
            new.insert(0, message)
        return new

    @property
    def results(self) -> list[object]:
        """The values of the tool results among the new messages."""
        return [one.result.value for one in self.new_messages if isinstance(one, ToolResultMessage)]

    @property
    def text(self) -> str:
        """The new messages as readable text."""
        return render_messages(self.new_messages)


PlainTurn: TypeAlias = str | ToolCall | Sequence[ToolCall] | ScriptedTurn | QueryResult | Exception
Turn: TypeAlias = PlainTurn | Callable[[ModelRequest], PlainTurn]
"""A text, calls, a provider's error, anything made by ``turn`` and its like, or a function of the request that returns it."""
AsyncTurn: TypeAlias = Turn | Callable[[ModelRequest], Awaitable[PlainTurn]]
"""A ``Turn``, or an async function of the request."""

TurnT = TypeVar("TurnT", bound=AsyncTurn)


class Script(Generic[TurnT]):
    """The turns of a model. What does not fit is an ``AssertionError``, which is raised again when the script is checked."""

    def __init__(self, turns: Sequence[TurnT]) -> None:
        self._turns: Final = turns
        self._calls_made = 0
        self._mismatch: AssertionError | None = None
        self.requests: Final[list[ModelRequest]] = []

    def begin(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> tuple[ModelRequest, TurnT]:
        """Records a request and returns it with the turn that answers it."""
        first: Sequence[ChatMessage] = [TextMessage("user", prompt)] if isinstance(prompt, str) else prompt
        request = ModelRequest([*first, *options.messages], options)
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._turns):
            self._fail(
                f"the script ends after turn {len(self._turns)}, but the model was asked for turn {number}; "
                f"add a turn, or end the conversation before. It was sent:\n{request.text}"
            )
        return request, self._turns[number - 1]

    def finish(self, request: ModelRequest, found: PlainTurn) -> QueryResult:
        """The answer of a turn, after a check of what it must have been sent."""
        scripted = _as_scripted(found)
        unseen = [text for text in scripted.sees if text not in request.text]
        if unseen:
            self._fail(
                f"turn {len(self.requests)} of the script must be sent {unseen[0]!r}, which is not in the new messages:\n"
                f"{request.text}"
            )
        answer = scripted.answer
        if all(one.id for one in answer.tool_calls):
            return answer
        return replace(answer, tool_calls=[self._with_id(one) for one in answer.tool_calls])

    def _with_id(self, made: ToolCall) -> ToolCall:
        if made.id:
            return made
        self._calls_made += 1
        return ToolCall(f"call_{self._calls_made}", made.name, made.arguments, made.metadata, made.raw_arguments)

    @property
    def turns_left(self) -> int:
        return max(0, len(self._turns) - len(self.requests))

    def check(self) -> None:
        """Raises an ``AssertionError`` if a request did not fit, or if turns are left over."""
        if self._mismatch is not None:
            raise self._mismatch
        if self.turns_left:
            number = len(self.requests) + 1
            raise AssertionError(
                f"{self.turns_left} of {len(self._turns)} turns of the script were not played; "
                f"the next is turn {number}: {_describe(self._turns[number - 1])}"
            )

    def _fail(self, text: str) -> NoReturn:
        # A loop around the model may swallow the error: the check after the test does not.
        self._mismatch = self._mismatch or AssertionError(text)
        raise self._mismatch


def _as_scripted(found: PlainTurn) -> ScriptedTurn:
    match found:
        case ScriptedTurn():
            return found
        case QueryResult():
            return ScriptedTurn(found)
        case Exception():
            return failure(found)
        case str() | ToolCall():
            return turn(found)
        case _:
            return turn(*found)


def _describe(found: AsyncTurn) -> str:
    if callable(found):
        return f"the function {getattr(found, '__name__', repr(found))}"
    answer = _as_scripted(found).answer
    calls = ", ".join(f"a call of {one.name!r}" for one in answer.tool_calls)
    return calls or f"{answer.finish_reason}: {answer.content!r}"


def events_of(answer: QueryResult) -> Iterator[AnswerEvent]:
    """The events of an answer but the last. Text comes word by word, arguments in two pieces, as from a provider."""
    for thought in answer.reasoning:
        yield from map(ReasoningCame, _split_words(thought.text))
    yield from map(TextCame, _split_words(answer.content))
    is_cut = answer.finish_reason in ("error", "length")
    for made in answer.tool_calls:
        text = made.raw_arguments if made.raw_arguments is not None else json.dumps(made.arguments, ensure_ascii=False)
        middle = (len(text) + 1) // 2
        yield CallStarted(made.id, made.name)
        yield ArgumentsCame(made.id, text[:middle])
        if is_cut and made is answer.tool_calls[-1]:
            return
        yield ArgumentsCame(made.id, text[middle:])
        yield CallCompleted(made)
    if answer.usage != Usage():
        yield UsageCame(answer.usage)


def _split_words(text: str) -> list[str]:
    """The words of a text, each with the blanks after it."""
    pieces: list[str] = []
    for piece in text.split(" "):
        pieces.append(f"{piece} ")
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]
