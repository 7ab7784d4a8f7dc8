"""What happens while an answer is streamed, in the order it comes.

``StreamResult.events`` yields these; its ``stream`` yields the text alone. Match them by class:

>>> def show(event: AnswerEvent) -> str:
...     match event:
...         case TextCame(text):
...             return text
...         case CallStarted(_, name):
...             return f"[{name}]"
...         case _:
...             return ""
>>> show(CallStarted("call_1", "read_file"))
'[read_file]'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult, Usage


@dataclass(frozen=True, slots=True)
class TextCame:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningCame:
    """A piece of what the provider shows of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model began a call. ``id`` is the id that the finished call has."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsCame:
    """A piece of the argument text of a call; providers that send arguments whole send one piece."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """The arguments of a call are complete. Run calls from ``AnswerEnded.result``: it tells how the answer ended."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class UsageCame:
    """The token counts so far."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The last event: the whole answer."""

    result: QueryResult


AnswerEvent: TypeAlias = (
    TextCame | ReasoningCame | CallStarted | ArgumentsCame | CallCompleted | UsageCame | AnswerEnded
)
