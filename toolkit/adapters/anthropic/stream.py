"""Puts a streamed answer of Anthropic's messages together."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.anthropic.decode import build_result
from toolkit.adapters.anthropic.encode import PROVIDER
from toolkit.adapters.argument_text import parse_object
from toolkit.adapters.blocks.stream import BlocksInPieces, GrowingBlock
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_object
from toolkit.adapters.query_results import end_stream_early
from toolkit.wire.query import QueryResult

_TEXT: Final = {"type": "text", "text": ""}
_THINKING: Final = {"type": "thinking", "thinking": "", "signature": ""}
_CALL: Final = {"type": "tool_use", "id": "", "name": "", "input": {}}
# For each delta: the kind of its block, that block if none was announced, and the key that comes in pieces.
_DELTAS: Final[dict[str, tuple[str, JsonDict, str]]] = {
    "text_delta": ("text", _TEXT, "text"),
    "citations_delta": ("text", _TEXT, ""),
    "thinking_delta": ("thinking", _THINKING, "thinking"),
    "signature_delta": ("thinking", _THINKING, "signature"),
    "input_json_delta": ("call", _CALL, ""),
    "compaction_delta": ("compaction", {"type": "compaction"}, "content"),
}


class Accumulator:
    """Takes the events of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}})
    'hello'
    >>> answer.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    ''
    >>> answer.result().content
    'hello'
    """

    def __init__(self) -> None:
        self._message: JsonDict = {}
        self._blocks = BlocksInPieces()
        self._error: object = None
        self._ended = False

    def feed(self, event: object) -> str:
        """Takes one event and returns the text in it."""
        raw = plain_object(event)
        if "type" not in raw:
            raw = plain_object(raw.get("data"))  # wrapped with the name of the event
        kind = raw.get("type")
        if kind == "content_block_delta":
            return self._feed_delta(raw.get("index"), plain_object(raw.get("delta")))
        if kind == "content_block_start":
            return self._start_block(raw.get("index"), plain_object(raw.get("content_block")))
        if kind == "content_block_stop":
            self._blocks.stop(raw.get("index"))
        elif kind == "message_start":
            return self._start_message(plain_object(raw.get("message")))
        elif kind == "message_delta":
            self._update_message(raw)
        elif kind == "message_stop":
            self._ended = True
        elif kind == "error":
            self._error = raw.get("error", raw)
        return ""

    def _start_message(self, message: JsonDict) -> str:
        self._message |= message
        content = plain_list(message.get("content"))
        if self._ended:  # recordings of whole conversations have several answers in a row, which are read as one
            self._ended = False
            self._blocks.next_answer()
            content = []
        return "".join(self._start_block(place, plain_object(block)) for place, block in enumerate(content))

    def _update_message(self, raw: JsonDict) -> None:
        usage = {**plain_object(self._message.get("usage")), **_without_nulls(plain_object(raw.get("usage")))}
        around = {key: value for key, value in raw.items() if key not in ("type", "delta", "usage")}
        self._message |= {**_without_nulls(around), **_without_nulls(plain_object(raw.get("delta"))), "usage": usage}

    def _start_block(self, index: int | None, block: JsonDict) -> str:
        if "type" not in block:
            return ""
        kind = "call" if "input" in block else str(block["type"])
        self._blocks.start(index, kind, block, block.get("id"))
        text = block.get("text") if kind == "text" else None
        return text if isinstance(text, str) else ""

    def _feed_delta(self, index: int | None, delta: JsonDict) -> str:
        delta_type = str(delta.get("type"))
        kind, default, growing_key = _DELTAS.get(delta_type, (None, None, ""))
        growing = self._blocks.find_last(index, kind)
        if growing is None:
            if kind is None or default is None:
                return ""  # a piece of a block that was never announced
            growing = self._blocks.start(index, kind, dict(default))
        block = growing.block
        if delta_type == "input_json_delta":
            growing.add_arguments(delta.get("partial_json"))
        elif delta_type == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        else:
            for key, value in _without_nulls(delta).items():
                if key == growing_key:
                    block[key] = f"{block.get(key) or ''}{value}"
                elif key != "type":
                    block[key] = value
        text = delta.get("text") if delta_type == "text_delta" else None
        return text if isinstance(text, str) else ""

    def result(self) -> QueryResult:
        """The answer so far. A stream without a stop reason was cut, which is an error."""
        is_cut = not self._ended and self._message.get("stop_reason") is None
        order = self._blocks.in_order()
        texts = {place: text for place, one in enumerate(order) if (text := _argument_text(one, is_cut)) is not None}
        content = [_finish_block(one, texts.get(place)) for place, one in enumerate(order)]
        whole = build_result({**self._message, "content": content}, texts)
        if self._error is None and not is_cut:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)


def _argument_text(growing: GrowingBlock, is_cut: bool) -> str | None:
    """The argument text of a call, also of one that the server runs itself; None for other blocks."""
    return growing.argument_text(growing.block.get("input"), is_cut) if growing.kind == "call" else None


def _finish_block(growing: GrowingBlock, text: str | None) -> JsonDict:
    return growing.block if text is None else {**growing.block, "input": parse_object(text)}


def _without_nulls(values: JsonDict) -> dict[str, Any]:
    """The values of an event; a null means nothing."""
    return {key: value for key, value in values.items() if value is not None}
