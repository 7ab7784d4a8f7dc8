"""Going through a conversation: the tool names of earlier calls, and the results that follow each message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, ToolResultMessage

_Raw = TypeVar("_Raw")


def decode_with_call_names(
    messages: Iterable[_Raw], decode: Callable[[_Raw, Mapping[str, str]], ChatMessage]
) -> list[ChatMessage]:
    """Decodes messages in their order. ``decode`` also gets the tool name of each call so far, by id, because many
    providers send a result with the id of its call only.
    """
    names: dict[str, str] = {}
    decoded: list[ChatMessage] = []
    for raw in messages:
        message = decode(raw, names)
        if isinstance(message, AssistantToolCallMessage):
            names.update((call.id, call.name) for call in message.tool_calls)
        decoded.append(message)
    return decoded


def group_results(messages: Iterable[ChatMessage]) -> Iterator[tuple[ChatMessage | None, list[ToolResultMessage]]]:
    """Each message that is not a result, with the results right after it. Results at the front come with None."""
    current: ChatMessage | None = None
    results: list[ToolResultMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
            continue
        if current is not None or results:
            yield current, results
        current, results = message, []
    if current is not None or results:
        yield current, results
