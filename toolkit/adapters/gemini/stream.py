"""Puts a streamed answer of Gemini together: each chunk is an answer with the parts that are new."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.gemini.content import PROVIDER
from toolkit.adapters.gemini.decode import decode_response
from toolkit.adapters.gemini.key_case import to_camel_case
from toolkit.adapters.gemini.partial_arguments import put_value
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.query_results import end_stream_early
from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult

_MERGED: Final = frozenset({"text", "thought"})


class Accumulator:
    """Takes the chunks of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]})
    'hello'
    """

    def __init__(self) -> None:
        self._parts: list[JsonDict] = []
        self._rest: JsonDict = {}
        self._reported: object = None
        self._error: object = None
        self._open_call: JsonDict | None = None
        self._broken: list[JsonDict] = []
        self._answered = False

    def feed(self, event: object) -> str:
        """Takes one chunk and returns the text in it."""
        chunk = plain(event)
        if not isinstance(chunk, dict):
            return ""
        chunk = to_camel_case(chunk)
        self._error = chunk.get("error") or self._error
        self._rest |= {key: value for key, value in chunk.items() if key != "candidates" and value is not None}
        texts: list[str] = []
        for candidate in map(plain_object, plain_list(chunk.get("candidates"))):
            if candidate.get("index"):
                continue
            self._answered = True
            self._reported = candidate.get("finishReason") or self._reported
            for part in plain_list(plain_object(candidate.get("content")).get("parts")):
                texts.append(self._feed_part(plain_object(part)))
        return "".join(texts)

    def _feed_part(self, part: JsonDict) -> str:
        if isinstance(part.get("functionCall"), dict):
            self._feed_call(part)
            return ""
        text = part.get("text")
        if not isinstance(text, str):
            self._parts += [part] if part else []
            return ""
        before = self._parts[-1] if self._parts else {}
        # A signed part is not merged: its signature is for its own content.
        if (
            before
            and before.keys() | part.keys() <= _MERGED
            and bool(before.get("thought")) == bool(part.get("thought"))
        ):
            self._parts[-1] = {**before, "text": before["text"] + text}
        elif text or part.keys() - _MERGED:
            self._parts.append(part)
        return "" if part.get("thought") else text

    def _feed_call(self, part: JsonDict) -> None:
        """Takes a whole call, or one that starts with its name and grows until a piece says that nothing follows."""
        raw = dict(part["functionCall"])
        follows, pieces = raw.pop("willContinue", False), plain_list(raw.pop("partialArgs", ()))
        if self._open_call is None or raw.get("name"):
            if self._open_call is not None:
                self._broken.append(self._open_call)
            self._open_call = {**part, "functionCall": {**raw, "args": dict(plain_object(raw.get("args")))}}
            self._parts.append(self._open_call)
        call = self._open_call["functionCall"]
        for piece in pieces:
            if not put_value(call["args"], plain_object(piece)):
                self._broken.append(self._open_call)
        if "thoughtSignature" in part:
            self._open_call["thoughtSignature"] = part["thoughtSignature"]
        if not follows:
            self._open_call = None

    def result(self) -> QueryResult:
        """The answer so far. A stream without a finish reason was cut, which is an error."""
        if not self._answered:
            whole = decode_response(self._rest)
            return whole if self._rest else end_stream_early(whole, PROVIDER, self._error)
        candidate = {"content": {"role": "model", "parts": self._parts}, "finishReason": self._reported}
        whole = decode_response({**self._rest, "candidates": [candidate]})
        whole = dataclasses.replace(whole, tool_calls=self._break_unfinished(whole.tool_calls))
        if self._error is None and self._reported is not None:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)

    def _break_unfinished(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Gives a call that never came whole a text that is not valid JSON, so that it is refused when it is run."""
        parts = [part for part in self._parts if isinstance(part.get("functionCall"), dict)]
        unfinished = [*self._broken, *([self._open_call] if self._open_call is not None else ())]
        return [
            ToolCall(call.id, call.name, {}, call.metadata, compact(part["functionCall"]["args"])[:-1])
            if any(part is one for one in unfinished)
            else call
            for call, part in zip(calls, parts, strict=True)
        ]
