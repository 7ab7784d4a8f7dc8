"""A conversation with a model: what ``toolkit.run`` starts from, returns, and continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from toolkit.wire.message import ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.query import Usage

ConversationEnd: TypeAlias = Literal["stop", "done"]

DONE: Final = "done"
"""The tool with which a model reports that it is finished."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, how the model ended them, and what they cost so far.

    ``ended_by`` is ``stop`` after an answer without calls, ``done`` after the tool of that name was called, and None while
    the model is not finished. ``usage`` is the sum over all answers, ``turns`` their number.

    >>> conversation = Conversation([TextMessage("user", "hi"), TextMessage("assistant", "hello")], "stop")
    >>> conversation.answer
    'hello'
    >>> conversation.add("And now?").messages[-1]
    TextMessage(role='user', content='And now?', metadata={})
    >>> Conversation.from_json(conversation.to_json()) == conversation
    True
    """

    messages: Sequence[ChatMessage] = ()
    ended_by: ConversationEnd | None = None
    usage: Usage = field(default_factory=Usage)
    turns: int = 0

    def __repr__(self) -> str:
        ended = "" if self.ended_by is None else f", ended by {self.ended_by!r}"
        return f"<Conversation: {_count(self.messages, 'message')}, {_count(self.turns, 'turn')}{ended}>"

    @property
    def answer(self) -> str:
        """The model's last text, or what it passed to ``done``; empty while the model is not finished."""
        if self.ended_by == "done":
            return next((_text(message) for message in reversed(self.messages) if _is_result_of_done(message)), "")
        last = self.messages[-1] if self.messages else None
        is_answer = self.ended_by == "stop" and isinstance(last, TextMessage) and last.role == "assistant"
        return _text(last) if is_answer and last is not None else ""

    def add(self, *messages: ChatMessage | str) -> Conversation:
        """The conversation with further messages, a text being the user's; it goes on when it is run again."""
        made = [TextMessage("user", one) if isinstance(one, str) else one for one in messages]
        return replace(self, messages=[*self.messages, *made], ended_by=None)

    def to_json(self) -> Any:
        """JSON to store; the same as ``toolkit.wire.to_json``."""
        from toolkit.wire.codec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> Conversation:
        """The conversation that ``to_json`` was called on."""
        from toolkit.wire.codec import from_json

        made = from_json(data)
        if not isinstance(made, cls):
            raise ValueError(f"this is the JSON of a {type(made).__name__}, not of a conversation")
        return made


def _count(found: Sequence[object] | int, what: str) -> str:
    number = found if isinstance(found, int) else len(found)
    return f"{number} {what}{'' if number == 1 else 's'}"


def _is_result_of_done(message: ChatMessage) -> bool:
    return isinstance(message, ToolResultMessage) and message.result.name == DONE and message.result.kind != "error"


def _text(message: ChatMessage) -> str:
    value = message.result.value if isinstance(message, ToolResultMessage) else message.content
    if isinstance(value, str):
        return value
    blocks = value if isinstance(value, Sequence) else ()
    return "".join(getattr(block, "text", None) or "" for block in blocks)
