"""A streamed answer, put together: from the provider's own last event, or from its items where that never came."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.openai_responses.content import text_of
from toolkit.adapters.openai_responses.decode import decode_response
from toolkit.adapters.openai_responses.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_object
from toolkit.wire.query import QueryResult

_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ARGUMENTS: Final = {
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}
_CALLS: Final = {"arguments": "function_call", "input": "custom_tool_call"}


class Accumulator:
    """Takes a stream's events in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "response.output_text.delta", "delta": "hello", "output_index": 0})
    'hello'
    """

    def __init__(self) -> None:
        self._items: dict[object, JsonDict] = {}
        self._texts: dict[object, dict[object, str]] = {}
        self._told = ""
        self._last: JsonDict | None = None
        self._error: object = None

    def feed(self, event: object) -> str:
        """The text that came with this event."""
        found = plain(event)
        text = self._fed(str(found.get("type", "")), found) if isinstance(found, dict) else ""
        self._told += text
        return text

    def _fed(self, kind: str, event: JsonDict) -> str:
        if kind in _LAST:
            self._last = plain_object(event.get("response"))
            return _rest(self._told, self.result().content)
        if kind == "error":
            self._error = {key: value for key, value in event.items() if key != "type"}
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = dict(plain_object(event.get("item")))
            self._items[_place(event, item.get("id"))] = item
        elif kind in ("response.output_text.delta", "response.output_text.done"):
            return self._grow_text(kind, event)
        else:
            self._grow_arguments(kind, event)
        return ""

    def _grow_text(self, kind: str, event: JsonDict) -> str:
        """A message's text, piece by piece and then whole."""
        place = _place(event, event.get("item_id"))
        self._items.setdefault(place, {"type": "message", "role": "assistant"})
        parts = self._texts.setdefault(place, {})
        part = event.get("content_index")
        so_far = parts.get(part, "")
        is_whole = kind.endswith("done")
        more = _rest(so_far, _text(event.get("text"))) if is_whole else _text(event.get("delta"))
        parts[part] = so_far + more
        return more

    def _grow_arguments(self, kind: str, event: JsonDict) -> None:
        """Arguments of a call, piece by piece and then whole."""
        stem, _, end = kind.rpartition(".")
        key = _ARGUMENTS.get(stem)
        if key is None:
            return
        opened = {"type": _CALLS[key], "id": event.get("item_id")}
        item = self._items.setdefault(_place(event, event.get("item_id")), opened)
        if end == "delta":
            item[key] = (item.get(key) or "") + _text(event.get("delta"))
        elif end == "done":
            item[key] = event.get(key, item.get(key))
            if event.get("name") and not item.get("name"):
                item["name"] = event["name"]

    def result(self) -> QueryResult:
        """The whole answer so far. A stream without its last event was cut: that is an error."""
        last = self._last
        if last is not None and self._error is None and (last.get("output") or not self._items):
            return decode_response(last)
        # Places that are numbers in their order, then what came without one.
        places = sorted(
            self._items, key=lambda place: (not isinstance(place, int), place if isinstance(place, int) else 0)
        )
        output = [self._item(place) for place in places]
        whole = decode_response({**(last or {}), "output": [item for item in output if item]})
        if last is not None and self._error is None:
            return whole
        kept = whole.metadata[PROVIDER]
        assert isinstance(kept, dict)
        why: JsonDict = {"error": self._error} if self._error is not None else {"cut": True}
        return QueryResult(whole.content, whole.tool_calls, "error", whole.usage, {PROVIDER: {**kept, **why}})

    def _item(self, place: object) -> JsonDict:
        """An item as far as it came; a message that never came whole has the text of its pieces."""
        item = self._items[place]
        if item.get("type") != "message" or text_of(item.get("content")):
            return item
        text = "".join(self._texts.get(place, {}).values())
        return {"role": "assistant", "content": text} if text else {}


def _place(event: JsonDict, id: object) -> object:
    index = event.get("output_index")
    return index if isinstance(index, int) else id


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _rest(told: str, whole: str) -> str:
    """What was not told yet; nothing where the whole says otherwise than what was told."""
    return whole[len(told) :] if whole.startswith(told) else ""
