"""Arguments of a call as providers send them: a text that is JSON, or should have been."""

from __future__ import annotations

import json
from typing import Any

from toolkit.wire.call import ToolCall


def call_from_text(id: str, name: str, text: str | None, metadata: dict[str, object] | None = None) -> ToolCall:
    """A call whose arguments came as text, which is kept. Nothing at all is an empty object; text that is no JSON object
    is refused when the call is run, not here.

    >>> call_from_text("1", "add", '{"a": 1}').arguments
    {'a': 1}
    >>> call_from_text("1", "add", '{"a": ').arguments
    {}
    """
    value = None if text is None else _parsed(text)
    return ToolCall(id, name, value if isinstance(value, dict) else {}, metadata, text)


def arguments_text(call: ToolCall) -> str:
    """The text to send back: what the provider sent, while it still says the same; else compact JSON.

    >>> arguments_text(ToolCall("1", "add", {"a": 1}, raw_arguments='{ "a": 1 }'))
    '{ "a": 1 }'
    >>> arguments_text(ToolCall("1", "add", {"a": 2}, raw_arguments='{ "a": 1 }'))
    '{"a":2}'
    """
    raw = call.raw_arguments
    if raw is not None:
        value = _parsed(raw)
        if value == call.arguments or (not isinstance(value, dict) and not call.arguments):
            return raw
    return compact(call.arguments)


def compact(value: object) -> str:
    """JSON without spaces, in the value's own order of keys, readable where it is not ASCII."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
