"""Puts a streamed answer of Anthropic's messages together."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.answers import end_stream_early
from toolkit.adapters.anthropic.codec import PROVIDER, build_result, decode_usage
from toolkit.adapters.blocks import BlocksInPieces, GrowingBlock
from toolkit.adapters.streaming import StreamedAnswer
from toolkit.adapters.values import JsonDict, compact, mend, mend_text, parse_object
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


class Accumulator(StreamedAnswer):
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
        super().__init__()
        self._message: JsonDict = {}
        self._blocks = BlocksInPieces()
        self._ended = False

    def _read(self, event: JsonDict) -> None:
        if "type" not in event:
            event = self._types.json_object(event.get("data"), "data")  # wrapped with the name of the event
        kind = self._types.text(event.get("type"), "type")
        if kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            self._read_block(kind, self._types.index(event.get("index"), "index"), event)
        elif kind == "message_start":
            self._start_message(self._types.json_object(event.get("message"), "message"))
        elif kind == "message_delta":
            self._update_message(event)
        elif kind == "message_stop":
            self._ended = True
            self._complete_calls()
        elif kind == "error":
            self._error = event.get("error", event)

    def _read_block(self, kind: str, index: int | None, event: JsonDict) -> None:
        if kind == "content_block_start":
            self._start_block(index, self._types.json_object(event.get("content_block"), "content_block"))
        elif kind == "content_block_delta":
            self._read_delta(index, self._types.json_object(event.get("delta"), "delta"))
        else:
            self._stop_block(self._blocks.stop(index))

    # -- the message -------------------------------------------------------------------------------------------------------

    def _start_message(self, message: JsonDict) -> None:
        content = self._types.objects(message.get("content"), "message.content")
        if self._ended or self._message.get("stop_reason") is not None:
            # Recordings of whole conversations have several answers in a row, which are read as one.
            self._ended = False
            self._blocks.next_answer()
            content = []
        elif self._message.get("id") and message.get("id") and self._message["id"] != message["id"]:
            self._blocks.drop_answer()
        else:
            self._blocks.repeat_answer()
        self._message |= message
        self._check_message()
        for place, block in enumerate(content):
            self._start_block(place, block)

    def _update_message(self, event: JsonDict) -> None:
        usage = self._types.json_object(self._message.get("usage"), "usage")
        usage = {**usage, **_without_nulls(self._types.json_object(event.get("usage"), "usage"))}
        around = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
        delta = self._types.json_object(event.get("delta"), "delta")
        self._message |= {**_without_nulls(around), **_without_nulls(delta), "usage": usage}
        self._check_message()
        if self._message.get("stop_reason") is not None:
            self._complete_calls()

    def _check_message(self) -> None:
        reported = self._types.maybe_text(self._message.get("stop_reason"), "delta.stop_reason")
        self._message["stop_reason"] = reported
        self._count(decode_usage(self._message.get("usage")))

    # -- blocks ------------------------------------------------------------------------------------------------------------

    def _start_block(self, index: int | None, block: JsonDict) -> None:
        block_type = self._types.text(block.get("type"), "content_block.type")
        if not block_type:
            return
        kind = "call" if "input" in block else block_type
        made, id = dict(block), None
        if kind == "call":
            id = self._types.id(block.get("id"), "content_block.id")
            given = self._types.json_object(block["input"], "content_block.input")
            name = self._types.name(block.get("name"), "content_block.name")
            made |= {"id": id or "", "name": name or "", "input": given}
        growing = self._blocks.start(index, kind, made, id)
        self._report_call(growing)
        if kind == "text":
            growing.block["text"] = text = self._types.text(block.get("text"), "content_block.text")
            self._say(text)

    def _read_delta(self, index: int | None, delta: JsonDict) -> None:
        delta_type = self._types.text(delta.get("type"), "delta.type")
        kind, default, growing_key = _DELTAS.get(delta_type, (None, None, ""))
        growing = self._blocks.find_last(index, kind) if delta_type else None
        if growing is None:
            if kind is None or default is None:
                return  # a piece of a block that was never announced
            growing = self._blocks.start(index, kind, dict(default))
        block = growing.block
        if delta_type == "input_json_delta":
            growing.add_arguments(self._read_arguments(delta.get("partial_json")))
            self._report_call(growing)
        elif delta_type == "citations_delta":
            before = block.get("citations")
            block["citations"] = [*(before if isinstance(before, list) else ()), delta.get("citation")]
        else:
            self._grow_block(block, growing_key, _without_nulls(delta))

    def _grow_block(self, block: JsonDict, growing_key: str, delta: JsonDict) -> None:
        for key, value in delta.items():
            if key == growing_key:
                piece = self._types.text(value, f"delta.{key}")
                block[key] = f"{block.get(key) or ''}{piece}"
                if key == "text":
                    self._say(piece)
                elif key == "thinking":
                    self._think(piece)
            elif key != "type" and (growing_key or not block.get(key)):
                block[key] = value

    def _read_arguments(self, piece: Any) -> str:
        return compact(piece) if isinstance(piece, dict) else self._types.text(piece, "delta.partial_json")

    # -- calls -------------------------------------------------------------------------------------------------------------

    def _report_call(self, growing: GrowingBlock) -> None:
        if _is_call(growing) and growing.id:
            self._tell(self._call_events.grow(growing.id, str(growing.block.get("name") or ""), growing.arguments))

    def _stop_block(self, growing: GrowingBlock | None) -> None:
        if growing is not None and _is_call(growing) and growing.id:
            calls = [call for call in self.result().tool_calls if call.id == growing.id]
            self._tell(self._call_events.complete_if_sound(calls[-1]))

    def _complete_calls(self) -> None:
        whole = self.result()
        if whole.finish_reason not in ("length", "error"):
            self._tell(self._call_events.complete_all(whole.tool_calls))

    def result(self) -> QueryResult:
        """The answer so far. A stream without a stop reason was cut, which is an error."""
        is_cut = self._failure is not None or (not self._ended and self._message.get("stop_reason") is None)
        order = self._blocks.in_order()
        texts = {place: text for place, one in enumerate(order) if (text := _argument_text(one, is_cut)) is not None}
        content = [_finish_block(one, texts.get(place)) for place, one in enumerate(order)]
        whole = build_result(mend({**self._message, "content": content}), texts)
        return end_stream_early(whole, PROVIDER, self._failure) if is_cut else whole


def _is_call(growing: GrowingBlock) -> bool:
    """Whether this is a call for us to run; servers run some themselves."""
    return growing.kind == "call" and growing.block.get("type") == "tool_use"


def _argument_text(growing: GrowingBlock, is_cut: bool) -> str | None:
    """The argument text of a call, also of one that the server runs itself; None for other blocks."""
    text = growing.argument_text(growing.block.get("input"), is_cut) if growing.kind == "call" else None
    return None if text is None else mend_text(text)


def _finish_block(growing: GrowingBlock, text: str | None) -> JsonDict:
    return growing.block if text is None else {**growing.block, "input": parse_object(text)}


def _without_nulls(values: JsonDict) -> dict[str, Any]:
    """The values of an event; a null means nothing."""
    return {key: value for key, value in values.items() if value is not None}
