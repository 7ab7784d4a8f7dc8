"""A streamed answer, put together."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from toolkit.adapters.bedrock.decode import answered
from toolkit.adapters.bedrock.encode import PROVIDER
from toolkit.adapters.blocks.stream import BlocksInPieces, GrowingBlock, parsed_object
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_object
from toolkit.wire.query import QueryResult

# Events are told by their name, which stands around them; recordings may have lost it. Then, by what is in them.
_TOLD_BY: Final = {
    "delta": "contentBlockDelta",
    "start": "contentBlockStart",
    "stopReason": "messageStop",
    "role": "messageStart",
    "usage": "metadata",
    "metrics": "metadata",
    "contentBlockIndex": "contentBlockStop",
}
_EVENTS: Final = frozenset(_TOLD_BY.values())


class Accumulator:
    """Takes a stream's events in their order, as JSON or as boto3 gives them.

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
        """The text that came with this event."""
        name, raw = _named(plain_object(event))
        if name == "contentBlockDelta":
            return self._delta(raw.get("contentBlockIndex"), plain_object(raw.get("delta")))
        if name == "contentBlockStart":
            self._start(raw.get("contentBlockIndex"), plain_object(raw.get("start")))
        elif name == "contentBlockStop":
            self._blocks.stop(raw.get("contentBlockIndex"))
        elif name in ("messageStop", "metadata"):
            self._response |= raw
        elif name.endswith("Exception"):
            self._error = {name: raw}
        return ""

    def _start(self, index: int | None, start: JsonDict) -> None:
        if not start:
            return  # a text, which begins with its first piece
        block = {key: dict(value) if isinstance(value, dict) else value for key, value in start.items()}
        self._blocks.start(index, next(iter(start), "text"), block, plain_object(start.get("toolUse")).get("toolUseId"))

    def _delta(self, index: int | None, delta: JsonDict) -> str:
        if not delta:
            return ""
        kind = next((key for key in delta if key != "citation"), "text")
        growing = self._blocks.last(index, kind) or self._blocks.start(index, kind, {})
        block, piece = growing.block, delta.get(kind)
        if kind == "text":
            block["text"] = block.get("text", "") + (piece or "")
            block |= {"citations": [*block.get("citations", ()), delta["citation"]]} if "citation" in delta else {}
            return str(piece or "")
        if kind == "toolUse":
            block.setdefault("toolUse", {"toolUseId": "", "name": ""})
            growing.add_arguments(plain_object(piece).get("input"))
        elif kind == "reasoningContent":
            _reason(block.setdefault("reasoningContent", {}), plain_object(piece))
        elif kind == "toolResult":
            result = block.setdefault("toolResult", {})
            result["content"] = [*result.get("content", ()), *plain_list(piece)]
        elif kind == "image":
            block["image"] = _joined(block.get("image"), piece)
        else:
            block[kind] = piece
        return ""

    def result(self) -> QueryResult:
        """The whole answer so far. A stream that never said why it ended was cut: that is an error."""
        is_cut = self._response.get("stopReason") is None
        order = self._blocks.in_order()
        texts = {place: text for place, one in enumerate(order) if (text := _arguments(one, is_cut)) is not None}
        content = [_whole(one, texts.get(place)) for place, one in enumerate(order)]
        whole = answered({**self._response, "output": {"message": {"content": content}}}, texts)
        if self._error is None and not is_cut:
            return whole
        why = {"error": self._error} if self._error is not None else {"cut": True}
        kept = {**plain_object(whole.metadata[PROVIDER]), **why}
        return QueryResult(whole.content, whole.tool_calls, "error", whole.usage, {PROVIDER: kept})


def _named(event: JsonDict) -> tuple[str, JsonDict]:
    """The name of an event and what is in it, whichever way the two are put together."""
    if isinstance(event.get("event"), str):
        return event["event"], plain_object(event.get("data"))
    if set(event) == {"data"}:
        return _named(plain_object(event["data"]))
    for name in event:
        if name in _EVENTS or name.endswith("Exception"):
            return name, plain_object(event[name])
    return next((name for key, name in _TOLD_BY.items() if key in event), ""), event


def _reason(reasoning: JsonDict, delta: JsonDict) -> None:
    for key in ("text", "signature"):
        if isinstance(delta.get(key), str):
            text = reasoning.setdefault("reasoningText", {})
            text[key] = text.get(key, "") + delta[key]
    if isinstance(delta.get("redactedContent"), str):
        reasoning["redactedContent"] = _appended(reasoning.get("redactedContent"), delta["redactedContent"])


def _joined(before: object, more: object) -> JsonDict:
    """An image so far and another piece of its bytes."""
    one, other = plain_object(before), plain_object(more)
    source, piece = plain_object(one.get("source")), plain_object(other.get("source"))
    if isinstance(piece.get("bytes"), str):
        source["bytes"] = _appended(source.get("bytes"), piece["bytes"])
    return {**one, **other, "source": source}


def _appended(before: str | None, more: str) -> str:
    """Bytes that come in pieces, each base64 of its own."""
    try:
        return base64.b64encode(base64.b64decode(before or "") + base64.b64decode(more)).decode()
    except binascii.Error:
        return (before or "") + more


def _arguments(growing: GrowingBlock, is_cut: bool) -> str | None:
    use = growing.block.get("toolUse")
    return growing.argument_text(use.get("input"), is_cut) if isinstance(use, dict) else None


def _whole(growing: GrowingBlock, text: str | None) -> JsonDict:
    """The block as an answer that is not streamed has it."""
    block = growing.block
    if isinstance(block.get("toolUse"), dict):
        use = block["toolUse"]
        given = use["input"] if use.get("input") and text is None else parsed_object(text)
        return {**block, "toolUse": {**use, "input": given}}
    if "citations" in block:
        return {"citationsContent": {"content": [{"text": block.get("text", "")}], "citations": block["citations"]}}
    return block
