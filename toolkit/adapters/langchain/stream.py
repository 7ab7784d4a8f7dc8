"""Puts a streamed answer together from ``AIMessageChunk``s, by index and id, which LangChain's own sum does not fully use."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolkit.adapters.argument_text import compact
from toolkit.adapters.langchain.content import content_text, feed_content
from toolkit.adapters.langchain.decode import build_result, message_json
from toolkit.adapters.langchain.encode import PROVIDER
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.plain_json import JsonDict, plain_object
from toolkit.adapters.query_results import end_stream_early, join_pieces
from toolkit.adapters.streamed_calls import CallPiece, CallsInPieces
from toolkit.wire.query import QueryResult

# Copies of the calls that some integrations add.
_REPEATED = frozenset({"tool_calls", "function_call"})


class Accumulator:
    """Takes the chunks of a stream in their order, as JSON or as LangChain's objects.

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
        self._answer_metadata: JsonDict = {}
        self._usage: JsonDict | None = None
        self._id: object = None
        self._ended = False

    def feed(self, event: object) -> str:
        """Takes one chunk and returns the text in it."""
        data: JsonDict = message_json(event).get("data", {})
        content = data.get("content")
        self._is_list = self._is_list or bool(content) and isinstance(content, list)
        feed_content(self._content, content)
        self._feed_calls(data)
        for key, value in plain_object(data.get("additional_kwargs")).items():
            if key not in _REPEATED:
                self._extra[key] = join_pieces(self._extra.get(key), value)
        answer_metadata = plain_object(data.get("response_metadata"))
        self._answer_metadata.update((key, value) for key, value in answer_metadata.items() if value is not None)
        self._usage = _add_usage(self._usage, data.get("usage_metadata"))
        self._id = self._id or data.get("id")
        whole = "chunk_position" not in data and data.get("type") == "ai"
        self._ended = self._ended or whole or data.get("chunk_position") == "last"
        return content_text(content)

    def _feed_calls(self, data: JsonDict) -> None:
        chunks = data.get("tool_call_chunks")
        if chunks is None:  # a message that came whole
            chunks = [*(data.get("tool_calls") or ()), *(data.get("invalid_tool_calls") or ())]
        for raw in chunks:
            index, arguments = raw.get("index"), raw.get("args")
            text = compact(arguments) if isinstance(arguments, dict) else arguments
            self._calls.feed(CallPiece(index if isinstance(index, int) else None, raw.get("id"), raw.get("name"), text))

    def result(self) -> QueryResult:
        """The answer so far. A stream with neither its last chunk nor a finish reason was cut, which is an error."""
        content = self._content if self._is_list else content_text(self._content)
        calls = self._calls.calls()
        data = {
            "content": content,
            "additional_kwargs": self._extra,
            "response_metadata": self._answer_metadata,
            "type": "ai",
            "name": None,
            "id": self._id,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "usage_metadata": self._usage,
        }
        whole = build_result({"type": "ai", "data": data}, [])
        reason = whole.finish_reason if whole.finish_reason in ("length", "error") or not calls else "tool_calls"
        whole = dataclasses.replace(whole, tool_calls=calls, finish_reason=reason)
        is_cut = not self._ended and provider_metadata(whole.metadata, PROVIDER)["finish_reason"] is None
        return end_stream_early(whole, PROVIDER, None) if is_cut else whole


def _add_usage(so_far: Any, more: Any) -> Any:
    """Adds the tokens of a chunk, which counts only its own."""
    if isinstance(so_far, dict) and isinstance(more, dict):
        return {
            key: _add_usage(so_far.get(key), more.get(key)) for key in [*so_far, *(k for k in more if k not in so_far)]
        }
    if isinstance(so_far, int) and isinstance(more, int):
        return so_far + more
    return so_far if more is None else more
