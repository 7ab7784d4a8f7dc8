"""Puts a streamed answer of Cohere's chat together."""

from __future__ import annotations

from typing import Any

from toolkit.adapters.answers import end_stream_early
from toolkit.adapters.cohere.codec import PROVIDER, build_result, decode_usage, encode_call
from toolkit.adapters.lossless import keep_difference
from toolkit.adapters.streaming import (
    CallPiece,
    CallsInPieces,
    GrowingCall,
    StreamedAnswer,
    keep_earlier,
    refuse_unfinished,
)
from toolkit.adapters.values import JsonDict, mend
from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult


class Accumulator(StreamedAnswer):
    """Takes the events of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "hello"}}}})
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._plan: list[str] = []
        self._content: dict[int, JsonDict] = {}
        self._citations: list[Any] = []
        self._calls = CallsInPieces()
        self._end: JsonDict | None = None

    def _read(self, event: JsonDict) -> None:
        kind = self._types.text(event.get("type"), "type")
        index = self._types.index(event.get("index"), "index")
        delta = self._types.json_object(event.get("delta"), "delta")
        if kind == "message-end":
            self._read_end(delta)
        elif not kind and event.get("message"):
            self._error = self._error or event["message"]
        elif kind == "tool-call-end":
            self._end_call(index)
        elif "message" in delta:
            self._read_message(kind, index, self._types.json_object(delta["message"], "delta.message"))

    def _read_message(self, kind: str, index: int | None, message: JsonDict) -> None:
        """Takes a piece of the message that is written."""
        where = "delta.message"
        if kind in ("content-start", "content-delta"):
            self._read_content(index or 0, self._types.json_object(message.get("content"), f"{where}.content"))
        elif kind == "tool-plan-delta":
            plan = self._types.text(message.get("tool_plan"), f"{where}.tool_plan")
            self._plan.append(plan)
            self._think(plan)
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._read_call(index, self._types.json_object(message.get("tool_calls"), f"{where}.tool_calls"))
        elif kind == "citation-start" and message.get("citations"):
            self._citations.append(message["citations"])

    def _read_content(self, index: int, piece: JsonDict) -> None:
        """Takes a piece of the part with this index: text, or thinking, which is not part of the answer's text."""
        part = self._content.setdefault(index, {})
        given = self._types.text(piece.get("type"), "delta.message.content.type")
        if given or not part:
            part["type"] = given or ("thinking" if "thinking" in piece else "text")
        kind = part["type"]
        text = self._types.text(piece.get(kind), f"delta.message.content.{kind}")
        part[kind] = part.get(kind, "") + text
        if kind == "text":
            self._say(text)
        elif kind == "thinking":
            self._think(text)

    def _read_call(self, index: int | None, raw: JsonDict) -> None:
        where = "delta.message.tool_calls"
        function = self._types.json_object(raw.get("function"), f"{where}.function")
        extra = {key: value for key, value in raw.items() if key not in ("id", "type", "function")}
        piece = CallPiece(
            index,
            self._types.id(raw.get("id"), f"{where}.id"),
            self._types.name(function.get("name"), f"{where}.function.name"),
            self._types.maybe_text(function.get("arguments"), f"{where}.function.arguments"),
            extra,
        )
        call = self._calls.feed(piece)
        if call.id and call.name:
            self._tell(self._call_events.grow(call.id, call.name, call.pieces))

    def _end_call(self, index: int | None) -> None:
        growing = self._calls.find(index)
        if growing is not None:
            growing.is_whole = True
            if growing.id:
                self._tell(self._call_events.complete_if_sound(_build_call(growing, 0)))

    def _read_end(self, delta: JsonDict) -> None:
        self._end = {
            **delta,
            "finish_reason": self._types.maybe_text(delta.get("finish_reason"), "delta.finish_reason"),
        }
        self._error = delta.get("error") or self._error
        self._count(decode_usage(delta.get("usage")))
        whole = self.result()
        if whole.finish_reason not in ("length", "error"):
            self._tell(self._call_events.complete_all(whole.tool_calls))

    def result(self) -> QueryResult:
        """The answer so far. A stream without its last event was cut, which is an error."""
        is_whole = self._failure is None and self._end is not None
        message: JsonDict = {
            "content": [part for _, part in sorted(self._content.items())],
            "tool_plan": "".join(self._plan),
            "citations": self._citations,
        }
        growing = self._calls.in_order()
        calls = [_build_call(one, number) for number, one in enumerate(growing)]
        if not is_whole:
            calls = [
                call if one.is_whole else refuse_unfinished(call) for call, one in zip(calls, growing, strict=True)
            ]
        end = self._end or {}
        whole = build_result(mend(message), calls, end.get("finish_reason"), end.get("usage"))
        return whole if is_whole else end_stream_early(whole, PROVIDER, self._failure)


def _build_call(growing: GrowingCall, number: int) -> ToolCall:
    made = growing.as_call(number)
    encoded = encode_call(made)
    return keep_difference(made, PROVIDER, keep_earlier(encoded, mend(growing.extra)), encoded)
