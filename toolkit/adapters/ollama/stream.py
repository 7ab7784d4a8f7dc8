"""Puts a streamed answer of Ollama together: each chunk is an answer with what is new; calls come whole."""

from __future__ import annotations

from toolkit.adapters.answers import count, end_stream_early
from toolkit.adapters.ollama.codec import PROVIDER, decode_response
from toolkit.adapters.streaming import StreamedAnswer
from toolkit.adapters.values import JsonDict
from toolkit.wire.query import QueryResult, Usage


class Accumulator(StreamedAnswer):
    """Takes the chunks of a stream in their order, as JSON or as the client's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"message": {"content": "hello"}, "done": True, "done_reason": "stop"})
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[JsonDict] = []
        self._first: JsonDict = {}
        self._last: JsonDict | None = None

    def _read(self, event: JsonDict) -> None:
        self._error = event.get("error") or self._error
        self._first = self._first or event
        if self._types.flag(event.get("done"), "done"):
            self._types.maybe_text(event.get("done_reason"), "done_reason")
            self._last = event
        message = self._types.json_object(event.get("message"), "message")
        thinking = self._types.text(message.get("thinking"), "message.thinking")
        self._thinking.append(thinking)
        self._think(thinking)
        text = self._types.text(message.get("content"), "message.content")
        self._content.append(text)
        self._say(text)
        self._read_calls(message)
        self._count(Usage(count(event.get("prompt_eval_count")), count(event.get("eval_count"))))

    def _read_calls(self, message: JsonDict) -> None:
        for raw in self._types.objects(message.get("tool_calls"), "message.tool_calls"):
            function = self._types.json_object(raw.get("function"), "message.tool_calls[].function")
            self._types.text(function.get("name"), "message.tool_calls[].function.name")
            self._types.json_object(function.get("arguments"), "message.tool_calls[].function.arguments")
            self._calls.append(raw)
            self._tell(self._call_events.complete(self.result().tool_calls[-1]))

    def result(self) -> QueryResult:
        """The answer so far. A stream without its last chunk was cut, which is an error."""
        message: JsonDict = {"content": "".join(self._content), "tool_calls": self._calls}
        if thinking := "".join(self._thinking):
            message["thinking"] = thinking
        whole = decode_response(
            {**(self._last or {}), "created_at": self._first.get("created_at", ""), "message": message}
        )
        is_whole = self._failure is None and self._last is not None
        return whole if is_whole else end_stream_early(whole, PROVIDER, self._failure)
