"""Puts a streamed answer of ConverseStream together."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from toolkit.adapters.argument_text import parse_object
from toolkit.adapters.bedrock.decode import build_result
from toolkit.adapters.bedrock.encode import PROVIDER
from toolkit.adapters.blocks.stream import BlocksInPieces, GrowingBlock
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_object
from toolkit.adapters.query_results import end_stream_early
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


class Accumulator:
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
        self._response: JsonDict = {}
        self._blocks = BlocksInPieces()
        self._error: object = None

    def feed(self, event: object) -> str:
        """Takes one event and returns the text in it."""
        name, raw = _unwrap_event(plain_object(event))
        if name == "contentBlockDelta":
            return self._feed_delta(raw.get("contentBlockIndex"), plain_object(raw.get("delta")))
        if name == "contentBlockStart":
            self._start_block(raw.get("contentBlockIndex"), plain_object(raw.get("start")))
        elif name == "contentBlockStop":
            self._blocks.stop(raw.get("contentBlockIndex"))
        elif name in ("messageStop", "metadata"):
            self._response |= raw
        elif name.endswith("Exception"):
            self._error = {name: raw}
        return ""

    def _start_block(self, index: int | None, start: JsonDict) -> None:
        if not start:
            return  # a text, which starts with its first piece
        block = {key: dict(value) if isinstance(value, dict) else value for key, value in start.items()}
        self._blocks.start(index, next(iter(start), "text"), block, plain_object(start.get("toolUse")).get("toolUseId"))

    def _feed_delta(self, index: int | None, delta: JsonDict) -> str:
        if not delta:
            return ""
        kind = next((key for key in delta if key != "citation"), "text")
        growing = self._blocks.find_last(index, kind) or self._blocks.start(index, kind, {})
        block, piece = growing.block, delta.get(kind)
        if kind == "text":
            block["text"] = block.get("text", "") + (piece or "")
            block |= {"citations": [*block.get("citations", ()), delta["citation"]]} if "citation" in delta else {}
            return str(piece or "")
        if kind == "toolUse":
            block.setdefault("toolUse", {"toolUseId": "", "name": ""})
            growing.add_arguments(plain_object(piece).get("input"))
        elif kind == "reasoningContent":
            _join_reasoning(block.setdefault("reasoningContent", {}), plain_object(piece))
        elif kind == "toolResult":
            result = block.setdefault("toolResult", {})
            result["content"] = [*result.get("content", ()), *plain_list(piece)]
        elif kind == "image":
            block["image"] = _join_image(block.get("image"), piece)
        else:
            block[kind] = piece
        return ""

    def result(self) -> QueryResult:
        """The answer so far. A stream without a stop reason was cut, which is an error."""
        is_cut = self._response.get("stopReason") is None
        order = self._blocks.in_order()
        texts = {place: text for place, one in enumerate(order) if (text := _argument_text(one, is_cut)) is not None}
        content = [_finish_block(one, texts.get(place)) for place, one in enumerate(order)]
        whole = build_result({**self._response, "output": {"message": {"content": content}}}, texts)
        if self._error is None and not is_cut:
            return whole
        return end_stream_early(whole, PROVIDER, self._error)


def _unwrap_event(event: JsonDict) -> tuple[str, JsonDict]:
    """The name of an event and its content, in whichever way it is wrapped."""
    if isinstance(event.get("event"), str):
        return event["event"], plain_object(event.get("data"))
    if set(event) == {"data"}:
        return _unwrap_event(plain_object(event["data"]))
    for name in event:
        if name in _EVENTS or name.endswith("Exception"):
            return name, plain_object(event[name])
    return next((name for key, name in _EVENTS_BY_KEY.items() if key in event), ""), event


def _join_reasoning(reasoning: JsonDict, delta: JsonDict) -> None:
    for key in ("text", "signature"):
        if isinstance(delta.get(key), str):
            text = reasoning.setdefault("reasoningText", {})
            text[key] = text.get(key, "") + delta[key]
    if isinstance(delta.get("redactedContent"), str):
        reasoning["redactedContent"] = _join_base64(reasoning.get("redactedContent"), delta["redactedContent"])


def _join_image(before: object, more: object) -> JsonDict:
    """An image so far with another piece of its bytes."""
    one, other = plain_object(before), plain_object(more)
    source, piece = plain_object(one.get("source")), plain_object(other.get("source"))
    if isinstance(piece.get("bytes"), str):
        source["bytes"] = _join_base64(source.get("bytes"), piece["bytes"])
    return {**one, **other, "source": source}


def _join_base64(before: str | None, more: str) -> str:
    """Bytes that come in pieces, each encoded on its own."""
    try:
        return base64.b64encode(base64.b64decode(before or "") + base64.b64decode(more)).decode()
    except binascii.Error:
        return (before or "") + more


def _argument_text(growing: GrowingBlock, is_cut: bool) -> str | None:
    use = growing.block.get("toolUse")
    return growing.argument_text(use.get("input"), is_cut) if isinstance(use, dict) else None


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
