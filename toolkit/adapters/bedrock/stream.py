"""Puts a streamed answer of ConverseStream together."""

from __future__ import annotations

import base64
from typing import Any, Final

from toolkit.adapters.answers import end_stream_early
from toolkit.adapters.bedrock.codec import PROVIDER, build_result, decode_usage
from toolkit.adapters.blocks import BlocksInPieces, GrowingBlock
from toolkit.adapters.streaming import StreamedAnswer
from toolkit.adapters.values import JsonDict, compact, mend, mend_text, parse_object, plain_list, plain_object
from toolkit.wire.query import QueryResult

# Events are wrapped with their name, which recordings may have lost. Then a key in the event shows its name.
_EVENTS_BY_KEY: Final = {
    "delta": "contentBlockDelta",
    "start": "contentBlockStart",
    "stopReason": "messageStop",
    "role": "messageStart",
    "usage": "metadata",
    "metrics": "metadata",
    "contentBlockIndex": "contentBlockStop",
}
_EVENTS: Final = frozenset(_EVENTS_BY_KEY.values())


class Accumulator(StreamedAnswer):
    """Takes the events of a stream in their order, as JSON or as boto3 returns them.

    >>> answer = Accumulator()
    >>> answer.feed({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hello"}}})
    'hello'
    >>> answer.feed({"messageStop": {"stopReason": "end_turn"}})
    ''
    >>> answer.result().content
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._response: JsonDict = {}
        self._blocks = BlocksInPieces()
        self._started = False

    def _read(self, event: JsonDict) -> None:
        name, raw = self._unwrap_event(event)
        if name.startswith("contentBlock"):
            self._read_block(name, self._types.index(raw.get("contentBlockIndex"), "contentBlockIndex"), raw)
        elif name == "messageStart":
            self._start_message()
        elif name in ("messageStop", "metadata"):
            self._end_message(raw)
        elif name.endswith("Exception"):
            self._error = {name: raw}

    def _unwrap_event(self, event: JsonDict) -> tuple[str, JsonDict]:
        """The name of an event and its content, in whichever way it is wrapped."""
        if isinstance(event.get("event"), str):
            return event["event"], self._types.json_object(event.get("data"), "data")
        if set(event) == {"data"}:
            return self._unwrap_event(self._types.json_object(event["data"], "data"))
        for name in event:
            if name in _EVENTS or name.endswith("Exception"):
                return name, self._types.json_object(event[name], name)
        return next((name for key, name in _EVENTS_BY_KEY.items() if key in event), ""), event

    def _read_block(self, name: str, index: int | None, raw: JsonDict) -> None:
        if name == "contentBlockDelta":
            self._read_delta(index, self._types.json_object(raw.get("delta"), "delta"))
        elif name == "contentBlockStart":
            self._start_block(index, self._types.json_object(raw.get("start"), "start"))
        else:
            self._stop_block(self._blocks.stop(index))

    # -- the message -------------------------------------------------------------------------------------------------------

    def _start_message(self) -> None:
        if self._response.pop("stopReason", None) is not None:
            self._blocks.next_answer()
        elif self._started:
            self._blocks.repeat_answer()
        self._started = True

    def _end_message(self, raw: JsonDict) -> None:
        self._response |= raw
        reported = self._types.maybe_text(self._response.get("stopReason"), "stopReason")
        self._response["stopReason"] = reported
        self._count(decode_usage(self._response.get("usage")))
        whole = self.result()
        if whole.finish_reason not in ("length", "error"):
            self._tell(self._call_events.complete_all(whole.tool_calls))

    # -- blocks ------------------------------------------------------------------------------------------------------------

    def _start_block(self, index: int | None, start: JsonDict) -> None:
        if not start:
            return  # a text, which starts with its first piece
        kind = next(iter(start))
        block = {key: dict(value) if isinstance(value, dict) else value for key, value in start.items()}
        id = None
        if "toolUse" in block:
            use = self._types.json_object(block["toolUse"], "start.toolUse")
            id = self._types.id(use.get("toolUseId"), "start.toolUse.toolUseId")
            name = self._types.name(use.get("name"), "start.toolUse.name")
            block["toolUse"] = {**use, "toolUseId": id or "", "name": name or ""}
        elif kind in ("toolResult", "image", "reasoningContent"):
            block[kind] = dict(self._types.json_object(block[kind], f"start.{kind}"))
        self._report_call(self._blocks.start(index, kind, block, id))

    def _read_delta(self, index: int | None, delta: JsonDict) -> None:
        if not delta:
            return
        kind = next((key for key in delta if key != "citation"), "text")
        growing = self._blocks.find_last(index, kind) or self._blocks.start(index, kind, {})
        block, piece = growing.block, delta.get(kind)
        if kind == "text":
            self._grow_text(block, self._types.text(piece, "delta.text"), delta)
        elif kind == "toolUse":
            block.setdefault("toolUse", {"toolUseId": "", "name": ""})
            growing.add_arguments(self._read_arguments(self._types.json_object(piece, "delta.toolUse").get("input")))
            self._report_call(growing)
        elif kind == "reasoningContent":
            self._grow_reasoning(
                block.setdefault("reasoningContent", {}), self._types.json_object(piece, f"delta.{kind}")
            )
        elif kind == "toolResult":
            result = block.setdefault("toolResult", {})
            result["content"] = [*plain_list(result.get("content")), *plain_list(piece)]
        elif kind == "image":
            block["image"] = _join_image(block.get("image"), piece)
        else:
            block[kind] = piece

    def _grow_text(self, block: JsonDict, text: str, delta: JsonDict) -> None:
        block["text"] = self._types.text(block.get("text"), "start.text") + text
        if "citation" in delta:
            block["citations"] = [*block.get("citations", ()), delta["citation"]]
        self._say(text)

    def _grow_reasoning(self, reasoning: JsonDict, delta: JsonDict) -> None:
        for key in ("text", "signature"):
            piece = self._types.maybe_text(delta.get(key), f"delta.reasoningContent.{key}")
            if piece is not None:
                text = reasoning.setdefault("reasoningText", {})
                text[key] = text.get(key, "") + piece
        redacted = self._types.maybe_text(delta.get("redactedContent"), "delta.reasoningContent.redactedContent")
        if redacted is not None:
            reasoning["redactedContent"] = _join_base64(reasoning.get("redactedContent"), redacted)
        self._think(delta["text"] if isinstance(delta.get("text"), str) else "")

    def _read_arguments(self, piece: Any) -> str:
        return compact(piece) if isinstance(piece, dict) else self._types.text(piece, "delta.toolUse.input")

    # -- calls -------------------------------------------------------------------------------------------------------------

    def _report_call(self, growing: GrowingBlock) -> None:
        if _is_call(growing) and growing.id:
            name = str(growing.block["toolUse"].get("name") or "")
            self._tell(self._call_events.grow(growing.id, name, growing.arguments))

    def _stop_block(self, growing: GrowingBlock | None) -> None:
        if growing is not None and _is_call(growing) and growing.id:
            calls = [call for call in self.result().tool_calls if call.id == growing.id]
            self._tell(self._call_events.complete_if_sound(calls[-1]))

    def result(self) -> QueryResult:
        """The answer so far. A stream without a stop reason was cut, which is an error."""
        is_cut = self._failure is not None or self._response.get("stopReason") is None
        order = self._blocks.in_order()
        texts = {place: text for place, one in enumerate(order) if (text := _argument_text(one, is_cut)) is not None}
        content = [_finish_block(one, texts.get(place)) for place, one in enumerate(order)]
        whole = build_result(mend({**self._response, "output": {"message": {"content": content}}}), texts)
        return end_stream_early(whole, PROVIDER, self._failure) if is_cut else whole


def _join_image(before: object, more: object) -> JsonDict:
    """An image so far with another piece of its bytes."""
    one, other = plain_object(before), plain_object(more)
    source, piece = plain_object(one.get("source")), plain_object(other.get("source"))
    if isinstance(piece.get("bytes"), str):
        source["bytes"] = _join_base64(source.get("bytes"), piece["bytes"])
    return {**one, **other, "source": source}


def _join_base64(before: object, more: str) -> str:
    """Bytes that come in pieces, each encoded on its own."""
    so_far = before if isinstance(before, str) else ""
    try:
        return base64.b64encode(base64.b64decode(so_far) + base64.b64decode(more)).decode()
    except ValueError:  # not base64, or not even ASCII
        return so_far + more


def _is_call(growing: GrowingBlock) -> bool:
    """Whether this is a call for us to run; Bedrock runs some itself."""
    use = growing.block.get("toolUse")
    return isinstance(use, dict) and use.get("type") != "server_tool_use"


def _argument_text(growing: GrowingBlock, is_cut: bool) -> str | None:
    use = growing.block.get("toolUse")
    text = growing.argument_text(use.get("input"), is_cut) if isinstance(use, dict) else None
    return None if text is None else mend_text(text)


def _finish_block(growing: GrowingBlock, text: str | None) -> JsonDict:
    """The block as it is in an answer that is not streamed."""
    block = growing.block
    if isinstance(block.get("toolUse"), dict):
        use = block["toolUse"]
        given = use["input"] if use.get("input") and text is None else parse_object(text or "{}")
        return {**block, "toolUse": {**use, "input": given}}
    if "citations" in block:
        return {"citationsContent": {"content": [{"text": block.get("text", "")}], "citations": block["citations"]}}
    return block
