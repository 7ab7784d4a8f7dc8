"""Results of calls without an id: the service matches them to calls by name and order, so they are sent in that order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from toolkit.adapters.conversation import group_results
from toolkit.adapters.provider_names import MADE_ID
from toolkit.wire.call import ToolCall
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, ToolResultMessage


def order_results(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """The messages, with results of calls without ids in the order of these calls, and each with the name of its call."""
    calls: Sequence[ToolCall] = ()
    for message, results in group_results(messages):
        if message is not None:
            yield message
        if isinstance(message, AssistantToolCallMessage):
            calls = message.tool_calls
        yield from _order_by_calls(calls, results)


def _order_by_calls(calls: Sequence[ToolCall], results: list[ToolResultMessage]) -> Iterator[ToolResultMessage]:
    place = {call.id: at for at, call in reversed(list(enumerate(calls)))}
    made = [one for one in results if one.result.tool_call_id in place and one.result.tool_call_id.startswith(MADE_ID)]
    in_order = iter(sorted(made, key=lambda one: place[one.result.tool_call_id]))
    for result in results:
        id = result.result.tool_call_id
        chosen = next(in_order) if id in place and id.startswith(MADE_ID) else result
        known = place.get(chosen.result.tool_call_id)
        if known is not None and not chosen.result.name:
            chosen = dataclasses.replace(chosen, result=dataclasses.replace(chosen.result, name=calls[known].name))
        yield chosen
