"""A streamed answer, put together from ``AIMessageChunk``s, by index and id where LangChain's own sum goes by less."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolkit.adapters.argument_text import compact
from toolkit.adapters.langchain.content import grow_content, text_of
from toolkit.adapters.langchain.decode import finished, message_json
from toolkit.adapters.langchain.encode import PROVIDER
from toolkit.adapters.lossless import own
from toolkit.adapters.plain_json import JsonDict, plain_object
from toolkit.adapters.streamed_calls import CallPiece, CallsInPieces
from toolkit.wire.query import QueryResult

# What some integrations repeat of the calls.
_REPEATED = frozenset({"tool_calls", "function_call"})


class Accumulator:
    """Takes a stream's chunks in their order, as JSON or as LangChain's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "AIMessageChunk", "data": {"content": "hello", "chunk_position": "last"}})
    'hello'
    >>> answer.result().content
    'hello'
    """

    def __init__(self) -> None:
        self._content: list[Any] = []
        self._is_list = False
        self._calls = CallsInPieces()
        self._extra: JsonDict = {}
        self._told: JsonDict = {}
        self._usage: JsonDict | None = None
        self._id: object = None
        self._ended = False

    def feed(self, event: object) -> str:
        """The text that came with this chunk."""
        data: JsonDict = message_json(event).get("data", {})
        content = data.get("content")
        self._is_list = self._is_list or bool(content) and isinstance(content, list)
        grow_content(self._content, content)
        self._take_calls(data)
        for key, value in plain_object(data.get("additional_kwargs")).items():
            if key not in _REPEATED:
                self._extra[key] = _grown(self._extra.get(key), value)
        told = plain_object(data.get("response_metadata"))
        self._told.update((key, value) for key, value in told.items() if value is not None)
        self._usage = _added(self._usage, data.get("usage_metadata"))
        self._id = self._id or data.get("id")
        whole = "chunk_position" not in data and data.get("type") == "ai"
        self._ended = self._ended or whole or data.get("chunk_position") == "last"
        return text_of(content)

    def _take_calls(self, data: JsonDict) -> None:
        chunks = data.get("tool_call_chunks")
        if chunks is None:  # a message that came whole
            chunks = [*(data.get("tool_calls") or ()), *(data.get("invalid_tool_calls") or ())]
        for raw in chunks:
            index, arguments = raw.get("index"), raw.get("args")
            text = compact(arguments) if isinstance(arguments, dict) else arguments
            self._calls.feed(CallPiece(index if isinstance(index, int) else None, raw.get("id"), raw.get("name"), text))

    def result(self) -> QueryResult:
        """The whole answer so far. A stream with neither its last chunk nor a reason for its end was cut: an error."""
        content = self._content if self._is_list else text_of(self._content)
        calls = self._calls.calls()
        data = {
            "content": content,
            "additional_kwargs": self._extra,
            "response_metadata": self._told,
            "type": "ai",
            "name": None,
            "id": self._id,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "usage_metadata": self._usage,
        }
        whole = finished({"type": "ai", "data": data}, [])
        reason = whole.finish_reason if whole.finish_reason in ("length", "error") or not calls else "tool_calls"
        kept = own(whole.metadata, PROVIDER)
        if not self._ended and kept["finish_reason"] is None:
            reason, kept = "error", {**kept, "cut": True}
        return dataclasses.replace(whole, tool_calls=calls, finish_reason=reason, metadata={PROVIDER: kept})


def _grown(so_far: Any, more: Any) -> Any:
    """Texts and lists come in pieces; anything else comes whole."""
    if isinstance(so_far, str) and isinstance(more, str):
        return so_far + more
    return [*so_far, *more] if isinstance(so_far, list) and isinstance(more, list) else more


def _added(so_far: Any, more: Any) -> Any:
    """Each chunk tells the tokens that are new."""
    if isinstance(so_far, dict) and isinstance(more, dict):
        return {key: _added(so_far.get(key), more.get(key)) for key in [*so_far, *(k for k in more if k not in so_far)]}
    if isinstance(so_far, int) and isinstance(more, int):
        return so_far + more
    return so_far if more is None else more
