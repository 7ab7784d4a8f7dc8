"""Puts a streamed answer together: from the provider's last event, or from the items before it if that never came."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.openai_responses.content import content_text
from toolkit.adapters.openai_responses.decode import decode_response
from toolkit.adapters.openai_responses.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_object
from toolkit.adapters.query_results import end_stream_early
from toolkit.wire.query import QueryResult

_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ARGUMENTS: Final = {
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}
_CALLS: Final = {"arguments": "function_call", "input": "custom_tool_call"}


class Accumulator:
    """Takes the events of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "response.output_text.delta", "delta": "hello", "output_index": 0})
    'hello'
    """

    def __init__(self) -> None:
        self._items: dict[object, JsonDict] = {}
        self._texts: dict[object, dict[object, str]] = {}
        self._text = ""
        self._last: JsonDict | None = None
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one event and returns the text in it."""
        found = plain(event)
        text = self._feed_event(str(found.get("type", "")), found) if isinstance(found, dict) else ""
        self._text += text
        return text

    def _feed_event(self, kind: str, event: JsonDict) -> str:
        if kind in _LAST:
            self._last = plain_object(event.get("response"))
            return _missing_text(self._text, self.result().content)
        if kind == "error":
            self._error = {key: value for key, value in event.items() if key != "type"}
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = dict(plain_object(event.get("item")))
            self._items[_place(event, item.get("id"))] = item
        elif kind in ("response.output_text.delta", "response.output_text.done"):
            return self._feed_text(kind, event)
        else:
            self._feed_arguments(kind, event)
        return ""

    def _feed_text(self, kind: str, event: JsonDict) -> str:
        """Takes a piece of a message's text, or the whole of it."""
        place = _place(event, event.get("item_id"))
        self._items.setdefault(place, {"type": "message", "role": "assistant"})
        parts = self._texts.setdefault(place, {})
        part = event.get("content_index")
        so_far = parts.get(part, "")
        is_whole = kind.endswith("done")
        more = _missing_text(so_far, _as_text(event.get("text"))) if is_whole else _as_text(event.get("delta"))
        parts[part] = so_far + more
        return more

    def _feed_arguments(self, kind: str, event: JsonDict) -> None:
        """Takes a piece of a call's arguments, or the whole of them."""
        stem, _, end = kind.rpartition(".")
        key = _ARGUMENTS.get(stem)
        if key is None:
            return
        started = {"type": _CALLS[key], "id": event.get("item_id")}
        item = self._items.setdefault(_place(event, event.get("item_id")), started)
        if end == "delta":
            item[key] = (item.get(key) or "") + _as_text(event.get("delta"))
        elif end == "done":
            item[key] = event.get(key, item.get(key))
            if event.get("name") and not item.get("name"):
                item["name"] = event["name"]

    def result(self) -> QueryResult:
        """The answer so far. A stream without its last event was cut, which is an error."""
        last = self._last
        if last is not None and self._error is None and (last.get("output") or not self._items):
            return decode_response(last)
        # Items with an index in their order, then those without.
        places = sorted(
            self._items, key=lambda place: (not isinstance(place, int), place if isinstance(place, int) else 0)
        )
        output = [self._build_item(place) for place in places]
        whole = decode_response({**(last or {}), "output": [item for item in output if item]})
        if last is not None and self._error is None:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)

    def _build_item(self, place: object) -> JsonDict:
        """An item so far; a message that never came whole has the text of its pieces."""
        item = self._items[place]
        if item.get("type") != "message" or content_text(item.get("content")):
            return item
        text = "".join(self._texts.get(place, {}).values())
        return {"role": "assistant", "content": text} if text else {}


def _place(event: JsonDict, id: object) -> object:
    index = event.get("output_index")
    return index if isinstance(index, int) else id


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _missing_text(so_far: str, whole: str) -> str:
    """The end of ``whole`` that is not in ``so_far``; nothing if it does not continue that text."""
    return whole[len(so_far) :] if whole.startswith(so_far) else ""
