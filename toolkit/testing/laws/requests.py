"""Laws of what an adapter writes: messages, tools and choices survive the way to the provider and back."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from toolkit.testing.laws.adapter import Adapter
from toolkit.wire import AssistantToolCallMessage, ChatMessage, ToolCall, ToolDefinition, ToolResultMessage, alias

if TYPE_CHECKING:
    from toolkit.wire import ToolChoice

_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


def check_messages_are_json(adapter: Adapter, messages: Sequence[ChatMessage]) -> None:
    """What is written is JSON, the same every time, and the neutral messages are not changed by it."""
    before = copy.deepcopy(list(messages))
    written = json.dumps(adapter.encode_messages(messages))
    assert written == json.dumps(adapter.encode_messages(messages)), "the same messages are written in two ways"
    assert list(messages) == before, "encode_messages changed the messages it was given"


def check_messages_round_trip(adapter: Adapter, messages: Sequence[ChatMessage]) -> None:
    """What was written, read and written again is the same: reading loses nothing that the provider was sent."""
    written = _as_sent(adapter.encode_messages(messages))
    back = adapter.decode_messages(copy.deepcopy(written))
    assert _as_sent(adapter.encode_messages(back)) == written, "reading and writing again changes the messages"


def check_calls_survive(adapter: Adapter, messages: Sequence[ChatMessage], *, keeps_ids: bool = True) -> None:
    """Calls come back with their names, arguments and ids, and each result belongs to the call that it belonged to.

    ``keeps_ids=False`` is for providers that have no ids. Those that no provider refuses must come back in all others.
    """
    back = adapter.decode_messages(_as_sent(adapter.encode_messages(messages)))
    sent, read = _calls(messages), _calls(back)
    assert len(sent) == len(read), f"{len(sent)} calls were written, and {len(read)} came back"
    for before, after in zip(sent, read, strict=True):
        assert after.name in (before.name, alias(before.name)), (
            f"the tool {before.name!r} came back as {after.name!r}, which no toolkit resolves; use toolkit.wire.alias"
        )
        if before.unread_text is None:
            assert after.arguments == before.arguments, f"the arguments of {before.name!r} changed"
        if keeps_ids and _PLAIN_ID.fullmatch(before.id):
            assert after.id == before.id, f"the id {before.id!r} came back as {after.id!r}"
    assert len({call.id for call in read}) == len(read), "two calls came back with the same id"
    expected, found = _results_by_call(messages, sent), _results_by_call(back, read)
    assert found.keys() == expected.keys(), "a result belongs to another call than before"
    changed = [place for place, text in expected.items() if text is not None and found[place] != text]
    assert not changed, f"the text of the result of {sent[changed[0]].name!r} changed, or belongs to another call"


def check_tool_survives(adapter: Adapter, tool: ToolDefinition, *, keeps_schemas: bool = True) -> None:
    """A definition comes back with a name that a toolkit resolves, its description and its schema."""
    written = _as_sent(adapter.encode_tools([tool]))
    back = adapter.decode_tools(copy.deepcopy(written))
    assert len(back) == 1 and isinstance(back[0], ToolDefinition), f"one tool was written, and {back!r} came back"
    assert back[0].name in (tool.name, alias(tool.name)), (
        f"the tool {tool.name!r} is sent as {back[0].name!r}, which no toolkit resolves; use toolkit.wire.alias"
    )
    assert back[0].description == tool.description, "the description changed"
    # Strict mode has rules of its own for schemas.
    if keeps_schemas and tool.parameters and not tool.strict:
        assert back[0].parameters == tool.parameters, "the schema changed"
    assert _as_sent(adapter.encode_tools(back)) == written, "reading and writing again changes the tool"


def check_choice_survives(adapter: Adapter, choice: ToolChoice) -> None:
    """A choice comes back as it was; one that the provider cannot express is a ``ValueError`` that says what to do."""
    try:
        written = adapter.encode_choice(choice)
    except ValueError as error:
        assert str(error), "the error does not say what to do instead"
        return
    if written is None:
        assert choice in ("auto", "none"), f"{choice!r} is left out of the request without an error"
        return
    back: Any = adapter.decode_choice(_as_sent(written))
    name = getattr(choice, "name", None)
    if name is not None:
        assert getattr(back, "name", None) in (name, alias(name)), f"{choice!r} came back as {back!r}"
    else:
        assert back == choice, f"{choice!r} came back as {back!r}"


def _as_sent(written: object) -> Any:
    return json.loads(json.dumps(written))


def _calls(messages: Sequence[ChatMessage]) -> list[ToolCall]:
    return [call for one in messages if isinstance(one, AssistantToolCallMessage) for call in one.tool_calls]


def _results_by_call(messages: Sequence[ChatMessage], calls: Sequence[ToolCall]) -> dict[int, object]:
    """The results by the places of their calls: the value of a text, None for others, whose form depends on the provider."""
    places = {call.id: place for place, call in enumerate(calls)}
    results = [one.result for one in messages if isinstance(one, ToolResultMessage)]
    return {places.get(one.tool_call_id, -1): one.value if one.kind == "text" else None for one in results}
