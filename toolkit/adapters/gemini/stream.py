"""A streamed answer, put together: chunks are answers themselves, with the parts that are new."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.gemini.content import PROVIDER
from toolkit.adapters.gemini.decode import decode_response
from toolkit.adapters.gemini.key_case import camel
from toolkit.adapters.gemini.partial_arguments import put_partial
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult

_MERGED: Final = frozenset({"text", "thought"})


class Accumulator:
    """Takes a stream's chunks in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]})
    'hello'
    """

    def __init__(self) -> None:
        self._parts: list[JsonDict] = []
        self._rest: JsonDict = {}
        self._word: object = None
        self._error: object = None
        self._open_call: JsonDict | None = None
        self._broken: list[JsonDict] = []
        self._answered = False

    def feed(self, event: object) -> str:
        """The text that came with this chunk."""
        chunk = plain(event)
        if not isinstance(chunk, dict):
            return ""
        chunk = camel(chunk)
        self._error = chunk.get("error") or self._error
        self._rest |= {key: value for key, value in chunk.items() if key != "candidates" and value is not None}
        texts: list[str] = []
        for candidate in map(plain_object, plain_list(chunk.get("candidates"))):
            if candidate.get("index"):
                continue
            self._answered = True
            self._word = candidate.get("finishReason") or self._word
            for part in plain_list(plain_object(candidate.get("content")).get("parts")):
                texts.append(self._part(plain_object(part)))
        return "".join(texts)

    def _part(self, part: JsonDict) -> str:
        if isinstance(part.get("functionCall"), dict):
            self._call(part)
            return ""
        text = part.get("text")
        if not isinstance(text, str):
            self._parts += [part] if part else []
            return ""
        before = self._parts[-1] if self._parts else {}
        # A part that is signed stays a part of its own: its signature is for what it says.
        if (
            before
            and before.keys() | part.keys() <= _MERGED
            and bool(before.get("thought")) == bool(part.get("thought"))
        ):
            self._parts[-1] = {**before, "text": before["text"] + text}
        elif text or part.keys() - _MERGED:
            self._parts.append(part)
        return "" if part.get("thought") else text

    def _call(self, part: JsonDict) -> None:
        """A call comes whole, or opens with its name and grows until a piece says that nothing follows."""
        raw = dict(part["functionCall"])
        follows, pieces = raw.pop("willContinue", False), plain_list(raw.pop("partialArgs", ()))
        if self._open_call is None or raw.get("name"):
            if self._open_call is not None:
                self._broken.append(self._open_call)
            self._open_call = {**part, "functionCall": {**raw, "args": dict(plain_object(raw.get("args")))}}
            self._parts.append(self._open_call)
        call = self._open_call["functionCall"]
        for piece in pieces:
            if not put_partial(call["args"], plain_object(piece)):
                self._broken.append(self._open_call)
        if "thoughtSignature" in part:
            self._open_call["thoughtSignature"] = part["thoughtSignature"]
        if not follows:
            self._open_call = None

    def result(self) -> QueryResult:
        """The whole answer so far. A stream that never said why it ended was cut: that is an error."""
        if not self._answered:
            whole = decode_response(self._rest)
            return whole if self._rest else self._failed(whole)
        candidate = {"content": {"role": "model", "parts": self._parts}, "finishReason": self._word}
        whole = decode_response({**self._rest, "candidates": [candidate]})
        whole = dataclasses.replace(whole, tool_calls=self._marked(whole.tool_calls))
        return whole if self._error is None and self._word is not None else self._failed(whole)

    def _marked(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """A call that never came whole must not run: it gets a text that is no JSON, as it would have come elsewhere."""
        parts = [part for part in self._parts if isinstance(part.get("functionCall"), dict)]
        unfinished = [*self._broken, *([self._open_call] if self._open_call is not None else ())]
        return [
            ToolCall(call.id, call.name, {}, call.metadata, compact(part["functionCall"]["args"])[:-1])
            if any(part is one for one in unfinished)
            else call
            for call, part in zip(calls, parts, strict=True)
        ]

    def _failed(self, whole: QueryResult) -> QueryResult:
        kept = whole.metadata[PROVIDER]
        assert isinstance(kept, dict)
        why = {"error": self._error} if self._error is not None else {"cut": True}
        return dataclasses.replace(whole, finish_reason="error", metadata={PROVIDER: {**kept, **why}})
