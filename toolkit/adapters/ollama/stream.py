"""Puts a streamed answer of Ollama together: each chunk is an answer with what is new; calls come whole."""

from __future__ import annotations

from typing import Any

from toolkit.adapters.ollama.decode import decode_response
from toolkit.adapters.ollama.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_object
from toolkit.adapters.query_results import end_stream_early
from toolkit.wire.query import QueryResult


class Accumulator:
    """Takes the chunks of a stream in their order, as JSON or as the client's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"message": {"content": "hello"}, "done": True, "done_reason": "stop"})
    'hello'
    """

    def __init__(self) -> None:
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[Any] = []
        self._first: JsonDict = {}
        self._last: JsonDict | None = None
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one chunk and returns the text in it."""
        chunk = plain(event)
        if not isinstance(chunk, dict):
            return ""
        self._error = chunk.get("error") or self._error
        self._first = self._first or chunk
        if chunk.get("done"):
            self._last = chunk
        message = plain_object(chunk.get("message"))
        self._calls += message.get("tool_calls") or ()
        self._thinking.append(message.get("thinking") or "")
        text = message.get("content") or ""
        self._content.append(text)
        return str(text)

    def result(self) -> QueryResult:
        """The answer so far. A stream without its last chunk was cut, which is an error."""
        message: JsonDict = {"content": "".join(self._content), "tool_calls": self._calls}
        if thinking := "".join(self._thinking):
            message["thinking"] = thinking
        whole = decode_response(
            {**(self._last or {}), "created_at": self._first.get("created_at", ""), "message": message}
        )
        if self._error is None and self._last is not None:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)
