"""Puts a streamed answer together: from the provider's last event, or from the items before it if that never came."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.answers import end_stream_early
from toolkit.adapters.openai_responses.codec import (
    PROVIDER,
    content_text,
    decode_call,
    decode_reasoning,
    decode_response,
    decode_usage,
    has_refusal,
    is_call,
)
from toolkit.adapters.streaming import UNFINISHED_TEXT, StreamedAnswer
from toolkit.adapters.values import JsonDict, mend, plain_text
from toolkit.wire.query import QueryResult

_FIRST: Final = frozenset({"response.created", "response.queued", "response.in_progress"})
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ITEM: Final = frozenset({"response.output_item.added", "response.output_item.done"})
# For the events that bring text in pieces (``.delta``) and whole (``.done``): what is in it, its key when it is whole, and
# the key that tells the texts of one item apart.
_TEXTS: Final = {
    "response.output_text": ("output_text", "text", "content_index"),
    "response.refusal": ("refusal", "refusal", "content_index"),
    "response.reasoning_summary_text": ("summary_text", "text", "summary_index"),
    "response.reasoning_text": ("reasoning_text", "text", "content_index"),
}
# For the events that bring arguments: the type of their item, and its key for them.
_ARGUMENTS: Final = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}


class Accumulator(StreamedAnswer):
    """Takes the events of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "response.output_text.delta", "delta": "hello", "output_index": 0})
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[object, JsonDict] = {}
        self._texts: dict[object, dict[tuple[str, int | None], str]] = {}
        self._arguments: dict[object, list[str]] = {}
        self._done: set[object] = set()
        self._text = ""
        self._reasoning = ""
        self._first: JsonDict = {}
        self._last: JsonDict | None = None

    def _read(self, event: JsonDict) -> None:
        kind = self._types.text(event.get("type"), "type")
        stem, _, end = kind.rpartition(".")
        if kind in _FIRST:
            self._first = {**self._types.json_object(event.get("response"), "response"), "output": []}
        elif kind in _LAST:
            self._read_last(self._types.json_object(event.get("response"), "response"))
        elif kind == "error":
            self._error = {key: value for key, value in event.items() if key != "type"}
        elif kind in _ITEM:
            self._read_item(event, is_done=end == "done")
        elif stem in _TEXTS:
            self._read_text(stem, end, event)
        elif stem in _ARGUMENTS:
            self._read_arguments(stem, end, event)

    def _read_last(self, response: JsonDict) -> None:
        for item in self._types.objects(response.get("output"), "response.output"):
            self._check_item(item, "response.output[]")
        self._last = response
        whole = self.result()
        self._add_reasoning(_missing_text(self._reasoning, "".join(one.text for one in whole.reasoning)))
        self._add_text(_missing_text(self._text, whole.content))
        self._count(decode_usage(response.get("usage")))
        if whole.finish_reason not in ("length", "error"):
            self._tell(self._call_events.complete_all(whole.tool_calls))

    # -- items -------------------------------------------------------------------------------------------------------------

    def _read_item(self, event: JsonDict, *, is_done: bool) -> None:
        item = mend(self._types.json_object(event.get("item"), "item"))
        self._check_item(item, "item")
        place = self._place(event, item.get("id"))
        self._items[place] = item
        if is_done:
            self._done.add(place)
        if not is_call(item) or not plain_text(item.get("call_id")):
            return  # a call without an id is reported at the end, when it has one
        call = decode_call(item, 0)
        if is_done:
            self._tell(self._call_events.complete_if_sound(call))
        elif call.name:
            self._tell(self._call_events.grow(call.id, call.name, self._arguments.get(place, ())))

    def _check_item(self, item: JsonDict, where: str) -> None:
        """Notes wrong types in what is read of an item."""
        self._types.text(item.get("type"), f"{where}.type")
        if is_call(item):
            for key in ("call_id", "id"):
                self._types.id(item.get(key), f"{where}.{key}")
            self._types.text(item.get("name"), f"{where}.name")
            given = item.get("arguments", item.get("input"))
            if not isinstance(given, dict):  # some servers send an object instead of text
                self._types.text(given, f"{where}.arguments")
        elif item.get("type", "message") == "message" and not isinstance(item.get("content"), str):
            for part in self._types.objects(item.get("content"), f"{where}.content"):
                self._types.text(part.get("type"), f"{where}.content[].type")
                self._types.text(part.get("text"), f"{where}.content[].text")

    def _place(self, event: JsonDict, id: object) -> object:
        index = self._types.index(event.get("output_index"), "output_index")
        return self._types.id(id, "item_id") if index is None else index

    # -- pieces ------------------------------------------------------------------------------------------------------------

    def _read_text(self, stem: str, end: str, event: JsonDict) -> None:
        """Takes a piece of a text, or the whole of it."""
        kind, key, part = _TEXTS[stem]
        place = self._place(event, event.get("item_id"))
        is_reasoning = "reasoning" in stem
        started = {"type": "reasoning"} if is_reasoning else {"type": "message", "role": "assistant"}
        self._items.setdefault(place, started)
        texts = self._texts.setdefault(place, {})
        at = kind, self._types.index(event.get(part), part)
        so_far = texts.get(at, "")
        if end == "done":
            more = _missing_text(so_far, self._types.text(event.get(key), key))
        else:
            more = self._types.text(event.get("delta"), "delta")
        texts[at] = so_far + more
        if is_reasoning:
            self._add_reasoning(more)
        elif kind == "output_text":
            self._add_text(more)

    def _add_text(self, text: str) -> None:
        self._text += text
        self._say(text)

    def _add_reasoning(self, text: str) -> None:
        self._reasoning += text
        self._think(text)

    def _read_arguments(self, stem: str, end: str, event: JsonDict) -> None:
        """Takes a piece of a call's arguments, or the whole of them."""
        kind, key = _ARGUMENTS[stem]
        place = self._place(event, event.get("item_id"))
        item = self._items.setdefault(place, {"type": kind, "id": self._types.id(event.get("item_id"), "item_id")})
        if end == "delta":
            before = item.get(key)
            pieces = self._arguments.setdefault(place, [before] if isinstance(before, str) and before else [])
            pieces.append(self._types.text(event.get("delta"), "delta"))
            item[key] = "".join(pieces)
            if (id := plain_text(item.get("call_id"))) and item.get("name"):
                self._tell(self._call_events.grow(id, str(item["name"]), pieces))
        elif end == "done":
            whole = self._types.maybe_text(event.get(key), key)
            item[key] = item.get(key) if whole is None else whole
            item["name"] = item.get("name") or self._types.name(event.get("name"), "name")
            self._done.add(place)

    # -- the result --------------------------------------------------------------------------------------------------------

    def result(self) -> QueryResult:
        """The answer so far. A stream without its last event was cut, which is an error."""
        last = self._last
        is_whole = last is not None and self._failure is None
        if last is not None and (_has_output(last) or not self._items):
            whole = decode_response(last)
        else:
            # Items with an index in their order, then those without.
            indexes = sorted(place for place in self._items if isinstance(place, int))
            places = [*indexes, *(place for place in self._items if not isinstance(place, int))]
            output = [self._build_item(place, is_whole) for place in places]
            whole = decode_response({**self._first, **(last or {}), "output": [item for item in output if item]})
        return whole if is_whole else end_stream_early(whole, PROVIDER, self._failure)

    def _build_item(self, place: object, is_whole: bool) -> JsonDict:
        """An item so far; a message or reasoning that never came whole has the text of its pieces."""
        item, texts = self._items[place], self._texts.get(place, {})
        if is_call(item) and not is_whole and place not in self._done:
            key = "input" if item["type"] == "custom_tool_call" else "arguments"
            return item if item.get(key) else {**item, "type": "function_call", "arguments": UNFINISHED_TEXT}
        if item.get("type") == "reasoning":
            is_shown = any(one.text for one in decode_reasoning([item]))
            return item if is_shown or not texts else _reasoning_item(item, texts)
        if item.get("type") != "message" or content_text(item.get("content")) or has_refusal(item):
            return item
        return _message_item(texts)


def _has_output(response: JsonDict) -> bool:
    output = response.get("output")
    return isinstance(output, list) and bool(output)


def _reasoning_item(item: JsonDict, texts: dict[tuple[str, int | None], str]) -> JsonDict:
    made: dict[str, list[JsonDict]] = {"summary": [], "content": []}
    for (kind, _), text in texts.items():
        made["summary" if kind == "summary_text" else "content"].append({"type": kind, "text": text})
    return {**item, **{key: parts for key, parts in made.items() if parts or key == "summary"}}


def _message_item(texts: dict[tuple[str, int | None], str]) -> JsonDict:
    """A message with the text of its pieces; nothing if there is none."""
    text = "".join(text for (kind, _), text in texts.items() if kind == "output_text")
    refusal = "".join(text for (kind, _), text in texts.items() if kind == "refusal")
    if refusal:
        parts: list[Any] = [{"type": "output_text", "text": text}] if text else []
        return {"type": "message", "role": "assistant", "content": [*parts, {"type": "refusal", "refusal": refusal}]}
    return {"role": "assistant", "content": text} if text else {}


def _missing_text(so_far: str, whole: str) -> str:
    """The end of ``whole`` that is not in ``so_far``; nothing if it does not continue that text."""
    return whole[len(so_far) :] if whole.startswith(so_far) else ""
