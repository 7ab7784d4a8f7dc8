"""A streamed answer, put together: every chunk is an answer with what is new; calls come whole."""

from __future__ import annotations

from typing import Any

from toolkit.adapters.ollama.decode import decode_response
from toolkit.adapters.ollama.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_object
from toolkit.wire.query import QueryResult


class Accumulator:
    """Takes a stream's chunks in their order, as JSON or as the client's objects.

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
        """The text that came with this chunk."""
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
        """The whole answer so far. A stream without its last chunk was cut: that is an error."""
        message: JsonDict = {"content": "".join(self._content), "tool_calls": self._calls}
        if thinking := "".join(self._thinking):
            message["thinking"] = thinking
        whole = decode_response(
            {**(self._last or {}), "created_at": self._first.get("created_at", ""), "message": message}
        )
        if self._error is None and self._last is not None:
            return whole
        kept = whole.metadata[PROVIDER]
        assert isinstance(kept, dict)
        why = {"error": self._error} if self._error is not None else {"cut": True}
        return QueryResult(whole.content, whole.tool_calls, "error", whole.usage, {PROVIDER: {**kept, **why}})
