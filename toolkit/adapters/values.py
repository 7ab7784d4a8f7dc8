"""The arguments of a call as JSON text, which may be broken: how it is read, kept and sent back."""

from __future__ import annotations

import json
from typing import Any

from toolkit.adapters.answers.surrogates import mend
from toolkit.wire.call import ToolCall


def call_from_text(id: str, name: str, text: str | None, metadata: dict[str, object] | None = None) -> ToolCall:
    """A call whose arguments came as text. The text is kept. No text at all means an empty object; text that is not a JSON
    object is refused when the call is run, not here.

    >>> call_from_text("1", "add", '{"a": 1}').arguments
    {'a': 1}
    >>> call_from_text("1", "add", '{"a": ').arguments
    {}
    """
    return ToolCall(id, name, {} if text is None else parse_object(text), metadata, text)


def call_from_arguments(id: str, name: str, arguments: object) -> ToolCall:
    """A call whose arguments came as an object, as text, or as any other JSON, which is refused when the call is run."""
    if isinstance(arguments, dict):
        return ToolCall(id, name, arguments)
    return call_from_text(id, name, arguments if isinstance(arguments, str | None) else compact(arguments))


def arguments_text(call: ToolCall) -> str:
    """The text to send back: what the provider sent, as long as it means the same; else compact JSON.

    >>> arguments_text(ToolCall("1", "add", {"a": 1}, raw_arguments='{ "a": 1 }'))
    '{ "a": 1 }'
    >>> arguments_text(ToolCall("1", "add", {"a": 2}, raw_arguments='{ "a": 1 }'))
    '{"a":2}'
    """
    raw = call.raw_arguments
    if raw is not None:
        value = parse_json(raw)
        if value == call.arguments or (not isinstance(value, dict) and not call.arguments):
            return raw
    return compact(call.arguments)


def has_broken_arguments(call: ToolCall) -> bool:
    """Whether the call has an argument text that is not a JSON object, and no arguments either."""
    text = call.unread_text
    return text is not None and not call.arguments and not isinstance(parse_json(text), dict)


def compact(value: object) -> str:
    """JSON without spaces, with keys in the order of the value and non-ASCII characters as they are."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def parse_json(text: str) -> Any:
    """The JSON in a text; None if it is not valid JSON. Lone surrogates in it are mended."""
    try:
        return mend(json.loads(text))
    except (ValueError, RecursionError):
        return None


def parse_object(text: str) -> dict[str, Any]:
    """The JSON object in a text; an empty one if there is none."""
    found = parse_json(text)
    return found if isinstance(found, dict) else {}
