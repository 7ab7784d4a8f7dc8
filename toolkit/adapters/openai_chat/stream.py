"""Puts a streamed answer of chat completions together."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.lossless import add_difference
from toolkit.adapters.openai_chat.content import content_text
from toolkit.adapters.openai_chat.decode import build_result
from toolkit.adapters.openai_chat.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.query_results import end_stream_early, join_pieces
from toolkit.adapters.streamed_calls import CallPiece, CallsInPieces
from toolkit.wire.query import QueryResult

_KNOWN: Final = frozenset({"role", "content", "tool_calls"})
_CALL_KEYS: Final = frozenset({"index", "id", "type", "function"})


class Accumulator:
    """Takes the chunks of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"choices": [{"delta": {"content": "hel"}}]})
    'hel'
    >>> answer.feed({"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]})
    'lo'
    >>> answer.result().content
    'hello'
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls = CallsInPieces()
        self._extra: JsonDict = {}
        self._reported: object = None
        self._usage: object = None
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one chunk and returns the text in it."""
        chunk = plain(event)
        if not isinstance(chunk, dict):
            return ""  # the end marker
        if chunk.get("error"):
            self._error = chunk["error"]
        self._usage = chunk.get("usage") or self._usage
        choices = [choice for choice in plain_list(chunk.get("choices")) if choice.get("index", 0) == 0]
        return "".join(self._feed_choice(choice) for choice in choices)

    def _feed_choice(self, choice: JsonDict) -> str:
        self._reported = choice.get("finish_reason") or self._reported
        delta = plain_object(choice.get("delta"))
        for raw in delta.get("tool_calls") or ():
            self._calls.feed(_read_piece(raw))
        for key, value in delta.items():
            if key not in _KNOWN and value is not None:
                self._extra[key] = join_pieces(self._extra.get(key), value)
        text = content_text(delta.get("content"))
        self._texts.append(text)
        return text

    def result(self) -> QueryResult:
        """The answer so far. A stream without a finish reason was cut, which is an error."""
        whole = build_result("".join(self._texts), self._calls.calls(), self._reported, self._usage, self._extra)
        if self._error is None and self._reported is not None:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)


def _read_piece(raw: JsonDict) -> CallPiece:
    function = plain_object(raw.get("function"))
    index, arguments = raw.get("index"), function.get("arguments")
    if isinstance(arguments, dict):  # some servers send an object instead of text
        arguments = compact(arguments)
    extra = {key: value for key, value in raw.items() if key not in _CALL_KEYS}
    return CallPiece(
        index if isinstance(index, int) else None,
        raw.get("id"),
        function.get("name"),
        arguments,
        {PROVIDER: add_difference({}, extra, {})} if extra else {},
    )
