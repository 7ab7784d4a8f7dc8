"""A streamed answer, put together."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.openai_chat.content import text_of
from toolkit.adapters.openai_chat.decode import decode_usage, finished
from toolkit.adapters.openai_chat.encode import PROVIDER
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.streamed_calls import CallPiece, CallsInPieces
from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult

_KNOWN: Final = frozenset({"role", "content", "tool_calls"})
_CALL_KEYS: Final = frozenset({"index", "id", "type", "function"})


class Accumulator:
    """Takes a stream's chunks in their order, as JSON or as the SDK's objects.

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
        self._word: object = None
        self._usage: object = None
        self._error: object = None

    def feed(self, event: object) -> str:
        """The text that came with this event."""
        chunk = plain(event)
        if not isinstance(chunk, dict):
            return ""  # the mark of the end
        if chunk.get("error"):
            self._error = chunk["error"]
        self._usage = chunk.get("usage") or self._usage
        texts = [self._choice(choice) for choice in plain_list(chunk.get("choices")) if choice.get("index", 0) == 0]
        return "".join(texts)

    def _choice(self, choice: JsonDict) -> str:
        self._word = choice.get("finish_reason") or self._word
        delta = plain_object(choice.get("delta"))
        for raw in delta.get("tool_calls") or ():
            self._calls.feed(_piece(raw))
        for key, value in delta.items():
            if key not in _KNOWN and value is not None:
                self._extra[key] = _grown(self._extra.get(key), value)
        text = text_of(delta.get("content"))
        self._texts.append(text)
        return text

    def result(self) -> QueryResult:
        """The whole answer so far. A stream that never said why it ended was cut: that is an error."""
        calls: list[ToolCall] = self._calls.calls()
        content = "".join(self._texts)
        if self._error is None and self._word is not None:
            return finished(content, calls, self._word, self._usage, self._extra)
        whole = finished(content, calls, "error", self._usage, self._extra)
        kept = whole.metadata[PROVIDER]
        assert isinstance(kept, dict)
        why = {"error": self._error} if self._error is not None else {"cut": True}
        own = {**kept, "finish_reason": self._word, **why}
        return QueryResult(content, calls, "error", decode_usage(self._usage), {PROVIDER: own})


def _piece(raw: JsonDict) -> CallPiece:
    function = plain_object(raw.get("function"))
    index, arguments = raw.get("index"), function.get("arguments")
    if isinstance(arguments, dict):  # some servers forget to make it a text
        from toolkit.adapters.argument_text import compact

        arguments = compact(arguments)
    extra = {key: value for key, value in raw.items() if key not in _CALL_KEYS}
    metadata: dict[str, Any] = {PROVIDER: {"residue": {"below": {key: {"put": value} for key, value in extra.items()}}}}
    return CallPiece(
        index if isinstance(index, int) else None,
        raw.get("id"),
        function.get("name"),
        arguments,
        metadata if extra else {},
    )


def _grown(so_far: Any, more: Any) -> Any:
    """Texts and lists come in pieces; anything else comes whole."""
    if isinstance(so_far, str) and isinstance(more, str):
        return so_far + more
    return [*so_far, *more] if isinstance(so_far, list) and isinstance(more, list) else more
