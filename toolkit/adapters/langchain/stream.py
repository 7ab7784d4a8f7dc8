"""Puts a streamed answer together from ``AIMessageChunk``s, by index and id, which LangChain's own sum does not fully use."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from toolkit.adapters.answers import end_stream_early, join_pieces
from toolkit.adapters.langchain.codec import (
    PROVIDER,
    build_result,
    content_text,
    decode_finish_reason,
    decode_reasoning,
    decode_usage,
    feed_content,
    message_json,
)
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.streaming import CallPiece, CallsInPieces, StreamedAnswer, refuse_last, refuse_unfinished
from toolkit.adapters.values import JsonDict, compact, mend, plain
from toolkit.wire.query import QueryResult

# Copies of the calls that some integrations add.
_REPEATED: Final = frozenset({"tool_calls", "function_call"})
# Keys that come as text, in pieces.
_TEXTS: Final = frozenset({"reasoning_content", "refusal"})


class Accumulator(StreamedAnswer):
    """Takes the chunks of a stream in their order, as JSON or as LangChain's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "AIMessageChunk", "data": {"content": "hello", "chunk_position": "last"}})
    'hello'
    >>> answer.result().content
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._content: list[Any] = []
        self._is_list = False
        self._calls = CallsInPieces()
        self._extra: JsonDict = {}
        self._answer_metadata: JsonDict = {}
        self._usage: JsonDict = {}
        self._id: object = None
        self._ended = False

    def _open(self, event: object) -> Any:
        return plain(event) if isinstance(event, Mapping) else message_json(event) or plain(event)

    def _read(self, event: JsonDict) -> None:
        data = self._types.json_object(event.get("data"), "data")
        extra = self._types.json_object(data.get("additional_kwargs"), "additional_kwargs")
        for key, value in extra.items():
            if key not in _REPEATED and not (key in _TEXTS and self._types.maybe_text(value, key) is None):
                self._extra[key] = join_pieces(self._extra.get(key), value)
        self._read_content(data)
        self._read_calls(data)
        self._usage = _add_usage(self._usage, self._types.json_object(data.get("usage_metadata"), "usage_metadata"))
        self._count(decode_usage({"usage_metadata": self._usage}))
        self._id = self._id or data.get("id")
        self._read_end(data)

    def _read_content(self, data: JsonDict) -> None:
        content = self._clean_content(data.get("content"))
        self._is_list = self._is_list or (bool(content) and isinstance(content, list))
        feed_content(self._content, content)
        self._think("".join(one.text for one in decode_reasoning({**data, "content": content})))
        self._say(content_text(content))

    def _clean_content(self, content: Any) -> Any:
        """The content without parts of a wrong type."""
        if not isinstance(content, list):
            return self._types.text(content, "content")
        parts: list[Any] = []
        for part in content:
            found = part if isinstance(part, str) else self._types.json_object(part, "content[]")
            if isinstance(found, str) or (found and self._types.text(found.get("type"), "content[].type")):
                parts.append(found)
        return parts

    def _read_calls(self, data: JsonDict) -> None:
        chunks = self._types.objects(data.get("tool_call_chunks"), "tool_call_chunks")
        if data.get("tool_call_chunks") is None:  # a message that came whole
            chunks = self._types.objects(data.get("tool_calls"), "tool_calls")
            chunks += self._types.objects(data.get("invalid_tool_calls"), "invalid_tool_calls")
        for raw in chunks:
            index, arguments = raw.get("index"), raw.get("args")
            piece = CallPiece(
                None if isinstance(index, str) else self._types.index(index, "tool_call_chunks[].index"),
                self._types.id(raw.get("id"), "tool_call_chunks[].id"),
                self._types.name(raw.get("name"), "tool_call_chunks[].name"),
                compact(arguments)
                if isinstance(arguments, dict)
                else self._types.maybe_text(arguments, "tool_call_chunks[].args"),
            )
            call = self._calls.feed(piece)
            if call.id and call.text:
                self._tell(self._call_events.grow(call.id, call.name, call.pieces))

    def _read_end(self, data: JsonDict) -> None:
        answer_metadata = self._types.json_object(data.get("response_metadata"), "response_metadata")
        self._answer_metadata.update((key, value) for key, value in answer_metadata.items() if value is not None)
        position = self._types.maybe_text(data.get("chunk_position"), "chunk_position")
        is_whole = "chunk_position" not in data and data.get("type") == "ai"
        self._ended = self._ended or is_whole or position == "last"
        if self._ended or answer_metadata:
            whole = self.result()
            if whole.finish_reason not in ("length", "error"):
                self._tell(self._call_events.complete_all(whole.tool_calls))

    def result(self) -> QueryResult:
        """The answer so far. A stream with neither its last chunk nor a finish reason was cut, which is an error."""
        data = {
            "content": self._content if self._is_list else content_text(self._content),
            "additional_kwargs": self._extra,
            "response_metadata": self._answer_metadata,
            "type": "ai",
            "name": None,
            "id": self._id,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "usage_metadata": self._usage or None,
        }
        whole = build_result(mend({"type": "ai", "data": data}), [])
        calls = self._calls.calls()
        reason = decode_finish_reason(data, calls)
        is_told = self._ended or provider_metadata(whole.metadata, PROVIDER)["finish_reason"] is not None
        if self._failure is None and is_told:
            calls = refuse_last(calls) if reason == "length" else calls
            return dataclasses.replace(whole, tool_calls=calls, finish_reason=reason)
        whole = dataclasses.replace(whole, tool_calls=[refuse_unfinished(call) for call in calls])
        return end_stream_early(whole, PROVIDER, self._failure)


def _add_usage(so_far: Any, more: Any) -> Any:
    """Adds the tokens of a chunk, which counts only its own."""
    if isinstance(so_far, dict) and isinstance(more, dict):
        return {
            key: _add_usage(so_far.get(key), more.get(key)) for key in [*so_far, *(k for k in more if k not in so_far)]
        }
    if isinstance(so_far, int) and isinstance(more, int):
        return so_far + more
    return so_far if more is None else more
