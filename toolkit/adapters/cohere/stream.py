"""Puts a streamed answer of Cohere's chat together."""

from __future__ import annotations

from typing import Any

from toolkit.adapters.cohere.decode import build_result
from toolkit.adapters.cohere.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_object
from toolkit.adapters.query_results import end_stream_early
from toolkit.adapters.streamed_calls import CallPiece, CallsInPieces
from toolkit.wire.query import QueryResult


class Accumulator:
    """Takes the events of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "hello"}}}})
    'hello'
    """

    def __init__(self) -> None:
        self._plan: list[str] = []
        self._content: dict[int, JsonDict] = {}
        self._citations: list[Any] = []
        self._calls = CallsInPieces()
        self._end: JsonDict | None = None
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one event and returns the text in it."""
        found = plain(event)
        if not isinstance(found, dict):
            return ""  # the end marker
        kind, index = found.get("type"), found.get("index")
        delta = plain_object(found.get("delta"))
        message = plain_object(delta.get("message"))
        if kind in ("content-start", "content-delta"):
            return self._feed_content(index if isinstance(index, int) else 0, plain_object(message.get("content")))
        if kind == "tool-plan-delta":
            self._plan.append(message.get("tool_plan") or "")
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._feed_call(index, plain_object(message.get("tool_calls")))
        elif kind == "citation-start" and message.get("citations"):
            self._citations.append(message["citations"])
        elif kind == "message-end":
            self._end = delta
            self._error = delta.get("error") or self._error
        elif kind is None and found.get("message"):
            self._error = found["message"]
        return ""

    def _feed_content(self, index: int, piece: JsonDict) -> str:
        """Takes a piece of the part with this index: text, or thinking, which is not part of the answer's text."""
        part = self._content.setdefault(index, {})
        if "type" in piece or not part:
            part["type"] = piece.get("type") or ("thinking" if "thinking" in piece else "text")
        kind = part["type"]
        text = piece.get(kind) or ""
        part[kind] = part.get(kind, "") + text
        return text if kind == "text" else ""

    def _feed_call(self, index: object, raw: JsonDict) -> None:
        function = plain_object(raw.get("function"))
        place = index if isinstance(index, int) else None
        self._calls.feed(CallPiece(place, raw.get("id"), function.get("name"), function.get("arguments")))

    def result(self) -> QueryResult:
        """The answer so far. A stream without its last event was cut, which is an error."""
        message: JsonDict = {
            "content": [part for _, part in sorted(self._content.items())],
            "tool_plan": "".join(self._plan),
            "citations": self._citations,
        }
        end = self._end or {}
        whole = build_result(message, self._calls.calls(), end.get("finish_reason"), end.get("usage"))
        if self._error is None and self._end is not None:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)
