"""Puts a streamed answer of chat completions together."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.answers import OPENAI_CHAT, end_stream_early, join_pieces
from toolkit.adapters.lossless import keep_difference
from toolkit.adapters.openai_chat.codec import PROVIDER, build_result, decode_usage, encode_call, reasoning_text
from toolkit.adapters.requests import CUSTOM
from toolkit.adapters.streaming import (
    CallPiece,
    CallsInPieces,
    GrowingCall,
    StreamedAnswer,
    keep_earlier,
    refuse_unfinished,
)
from toolkit.adapters.values import JsonDict, compact, mend, mend_text
from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult

_KNOWN: Final = frozenset({"role", "content", "tool_calls", "function_call"})
# Keys that come as text, in pieces.
_TEXTS: Final = frozenset({"reasoning", "reasoning_content", "refusal"})


class Accumulator(StreamedAnswer):
    """Takes the chunks of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"choices": [{"delta": {"content": "hel"}}]})
    'hel'
    >>> answer.feed_events({"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]})
    [TextDelta(text='lo')]
    >>> answer.result().content
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls = CallsInPieces()
        # In the form of 2023, ``function_call``: the only call, or a copy of one.
        self._old_call = CallsInPieces()
        self._extra: JsonDict = {}
        self._reported: str | None = None
        self._usage: JsonDict = {}

    def _read(self, event: JsonDict) -> None:
        self._error = event.get("error") or self._error
        for choice in self._types.objects(event.get("choices"), "choices"):
            if not self._types.index(choice.get("index"), "choices[].index"):
                self._read_choice(choice)
        if usage := self._types.json_object(event.get("usage"), "usage"):
            self._usage = usage
            self._count(decode_usage(usage))

    def _read_choice(self, choice: JsonDict) -> None:
        delta = self._types.json_object(choice.get("delta"), "choices[].delta")
        self._read_content(delta)
        for raw in self._types.objects(delta.get("tool_calls"), "choices[].delta.tool_calls"):
            call = self._calls.feed(self._read_piece(raw))
            if call.id and call.text:
                self._tell(self._call_events.grow(call.id, call.name, call.pieces))
        if function := self._types.json_object(delta.get("function_call"), "choices[].delta.function_call"):
            self._old_call.feed(self._read_piece({"index": 0, "function": function}))
        reported = self._types.maybe_text(choice.get("finish_reason"), "choices[].finish_reason")
        if reported:
            self._reported = reported
            if OPENAI_CHAT.get(reported) not in ("length", "error"):
                self._tell(self._call_events.complete_all(self._build_calls()))

    def _read_content(self, delta: JsonDict) -> None:
        """Takes a piece of the text and of the reasoning, and keys that the neutral form has no field for."""
        for key, value in delta.items():
            if key in _TEXTS:
                value = self._types.maybe_text(value, f"choices[].delta.{key}")
            if key not in _KNOWN and value is not None:
                self._extra[key] = join_pieces(self._extra.get(key), value)
        thought = reasoning_text(delta)
        self._thoughts.append(thought)
        self._think(thought)
        text = self._read_text(delta.get("content"))
        self._texts.append(text)
        self._say(text)

    def _read_text(self, content: Any) -> str:
        """The text of a piece of content, which may be a list of parts."""
        where = "choices[].delta.content"
        if not isinstance(content, list):
            return self._types.text(content, where)
        parts = self._types.objects(content, where)
        said = [part for part in parts if self._types.text(part.get("type"), f"{where}[].type") in ("text", "")]
        return "".join(self._types.text(part.get("text"), f"{where}[].text") for part in said)

    def _read_piece(self, raw: JsonDict) -> CallPiece:
        """A piece of a call: of a function, whose arguments are JSON text, or of a custom tool, which takes any text."""
        where = "choices[].delta.tool_calls[]"
        function = self._types.json_object(raw.get("function"), f"{where}.function")
        custom = self._types.json_object(raw.get("custom"), f"{where}.custom")
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send an object instead of text
            arguments = compact(arguments)
        text = self._types.maybe_text(arguments, f"{where}.function.arguments")
        given = self._types.maybe_text(custom.get("input"), f"{where}.custom.input")
        extra = {key: value for key, value in raw.items() if key not in ("index", "id", "function", "custom")}
        for key, inner in (("function", function), ("custom", custom)):
            rest = {name: value for name, value in inner.items() if name not in ("name", "arguments", "input")}
            extra |= {key: rest} if rest or (key == "custom" and inner) else {}
        return CallPiece(
            self._types.index(raw.get("index"), f"{where}.index"),
            self._types.id(raw.get("id"), f"{where}.id"),
            self._types.name(function.get("name", custom.get("name")), f"{where}.function.name"),
            text if given is None else given,
            extra,
        )

    def _build_calls(self) -> list[ToolCall]:
        calls = self._calls.in_order() or [call for call in self._old_call.in_order() if call.name]
        return [_build_call(call, number) for number, call in enumerate(calls)]

    def result(self) -> QueryResult:
        """The answer so far. A stream without a finish reason was cut, which is an error."""
        is_whole = self._failure is None and self._reported is not None
        calls = self._build_calls()
        whole = build_result(
            mend_text("".join(self._texts)),
            calls if is_whole else [refuse_unfinished(call) for call in calls],
            self._reported,
            self._usage,
            mend(self._extra),
            mend_text("".join(self._thoughts)),
        )
        return whole if is_whole else end_stream_early(whole, PROVIDER, self._failure)


def _build_call(growing: GrowingCall, number: int) -> ToolCall:
    """The call so far, with the keys that only the provider knows."""
    if growing.extra.get("type") == "custom" or "custom" in growing.extra:
        given = {"input": mend_text(growing.text or "")}
        made = ToolCall(growing.id or f"call_{number}", growing.name, given, {PROVIDER: dict(CUSTOM)})
    else:
        made = growing.as_call(number)
    encoded = encode_call(made)
    return keep_difference(made, PROVIDER, keep_earlier(encoded, mend(growing.extra)), encoded)
