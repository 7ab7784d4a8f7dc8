"""Answers of scripted models, and what is read from conversations with them."""

from __future__ import annotations

from toolkit import Conversation, QueryResult, ToolCall, ToolResultMessage


def says(text: str) -> QueryResult:
    return QueryResult(text)


def calls(*made: ToolCall, text: str = "") -> QueryResult:
    return QueryResult(text, made, "tool_calls")


def add(id: str, a: int, b: int) -> ToolCall:
    return ToolCall(id, "add", {"a": a, "b": b})


def done(message: str, id: str = "end") -> ToolCall:
    return ToolCall(id, "done", {"message": message})


def values(conversation: Conversation) -> list[object]:
    """The values of the results in a conversation."""
    return [one.result.value for one in conversation.messages if isinstance(one, ToolResultMessage)]
