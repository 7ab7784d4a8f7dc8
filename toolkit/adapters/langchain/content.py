"""Content of LangChain's messages: its own standard blocks, OpenAI's parts, which it takes as well, and bare texts.

Blocks go out in LangChain's standard form, which all its models read; one that came in another form keeps that form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from toolkit.adapters.lossless import residue, restored
from toolkit.adapters.openai_chat.content import decode_part, encode_part
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.call import ToolCall
from toolkit.wire.content import BlockType, ContentBlock

Style: TypeAlias = Literal["standard", "openai", "bare"]
_MEDIA: Final[dict[str, BlockType]] = {"image": "image", "audio": "audio", "file": "document"}
_NAMES: Final = {kind: name for name, kind in _MEDIA.items()}
# Where a block repeats a call that the message has in its list of calls: what holds the arguments.
_ARGUMENTS: Final = {"tool_use": "input", "tool_call": "args"}
_FRAGMENTS: Final = frozenset({"input_json_delta", "tool_call_chunk"})


# -- content as blocks -------------------------------------------------------------------------------------------------


def encode_blocks(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[Any]:
    """Parts for blocks, with native parts back in their places."""
    styles: JsonDict = kept.get("styles", {})
    extras: JsonDict = kept.get("parts", {})
    parts = [
        restored(_styled(block, styles.get(str(at), "standard")), extras.get(str(at)))
        for at, block in enumerate(blocks)
    ]
    for place, raw in sorted((int(place), raw) for place, raw in kept.get("native_parts", {}).items()):
        parts.insert(place, raw)
    return parts


def decode_blocks(parts: Sequence[Any]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to make the same parts again."""
    blocks: list[ContentBlock] = []
    styles: JsonDict = {}
    extras: JsonDict = {}
    natives: JsonDict = {}
    for place, part in enumerate(parts):
        block, style = _read(part)
        if block is None:
            natives[str(place)] = part
            continue
        at = str(len(blocks))
        left = residue(part, _styled(block, style))
        if style != "standard":
            styles[at] = style
        if left is not None:
            extras[at] = left
        blocks.append(block)
    kept = {"styles": styles, "parts": extras, "native_parts": natives}
    return blocks, {key: value for key, value in kept.items() if value}


def text_of(content: object) -> str:
    """The text of a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    return "".join(text for part in (content if isinstance(content, list) else ()) if (text := _text(part)) is not None)


def _text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) and part.get("type") in ("text", None) else None
    return text if isinstance(text, str) else None


def _read(part: object) -> tuple[ContentBlock | None, Style]:
    if isinstance(part, str):
        return ContentBlock("text", text=part), "bare"
    if not isinstance(part, dict):
        return None, "standard"
    kind = _MEDIA.get(str(part.get("type")))
    if kind is not None:
        media_type = part.get("mime_type")
        for ours, theirs in (("data", "base64"), ("url", "url"), ("file_id", "file_id")):
            if isinstance(part.get(theirs), str):
                made: Any = {ours: part[theirs], "media_type": media_type}
                return ContentBlock(kind, **made), "standard"
    block = decode_part(part)
    return block, "standard" if block is None or block.type == "text" else "openai"


def _styled(block: ContentBlock, style: Style) -> Any:
    if style == "bare" and block.text is not None:
        return block.text
    if style == "openai" or block.text is not None:
        return encode_part(block)
    made: JsonDict = {"type": _NAMES[block.type]}
    for ours, theirs in (("data", "base64"), ("url", "url"), ("file_id", "file_id")):
        if (value := getattr(block, ours)) is not None:
            made[theirs] = value
    return {**made, "mime_type": block.media_type} if block.media_type is not None else made


# -- content of a model's turn, which is one text to us ------------------------------------------------------------------


def decode_layout(content: list[Any]) -> JsonDict:
    """How the text of a turn lies between what is not text (thinking, calls, citations): each part, texts as their length."""
    laid: list[Any] = []
    for part in content:
        text = _text(part)
        if text is None:
            laid.append({"native": part})
            continue
        left = residue(part, {"type": "text", "text": text})
        laid.append({"text": len(text), **({"residue": left} if left is not None else {})})
    return {"layout": laid}


def encode_layout(text: str, calls: Sequence[ToolCall], laid: list[JsonDict]) -> list[Any]:
    """The parts again. A text that was changed stands where the first one stood; calls are what they are now."""
    lengths = [part["text"] for part in laid if "text" in part]
    is_whole = sum(lengths) == len(text)
    by_id = {call.id: call for call in calls}
    parts: list[Any] = []
    rest: str = text
    for part in laid:
        if "native" in part:
            parts += _native(part["native"], by_id)
            continue
        here, rest = (rest[: part["text"]], rest[part["text"] :]) if is_whole else (rest, "")
        if here or is_whole:
            parts.append(restored({"type": "text", "text": here}, part.get("residue")))
    return [*parts, {"type": "text", "text": rest}] if rest else parts


def _native(part: Any, calls: dict[str, ToolCall]) -> list[Any]:
    """The part itself; the copy of a call follows the call, and goes with it."""
    key = _ARGUMENTS.get(part.get("type", "")) if isinstance(part, dict) else None
    if key is None or not isinstance(part.get("id"), str):
        return [part]
    call = calls.get(part["id"])
    if call is None:
        return []
    value = _parsed(part.get(key))
    return [part] if value == call.arguments else [{**part, key: call.arguments}]


def _parsed(value: object) -> object:
    """Streams leave the arguments of a copied call as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


# -- content that comes in pieces ----------------------------------------------------------------------------------------


def grow_content(so_far: list[Any], content: object) -> None:
    """Takes up one chunk's content: parts of one index are one part, as are texts in a row."""
    parts: list[Any] = content if isinstance(content, list) else [content] if content else []
    for part in parts:
        text = _text(part)
        index = part.get("index") if isinstance(part, dict) else None
        if isinstance(part, dict) and part.get("type") in _FRAGMENTS:
            continue  # of calls, which come beside the content
        last = next((one for one in reversed(so_far) if _continues(one, part, index)), None)
        if last is None:
            so_far.append(dict(part) if isinstance(part, dict) else {"type": "text", "text": text or ""})
        elif text is not None:
            last["text"] += text
        else:
            _grow(last, part)


def _continues(one: JsonDict, part: Any, index: object) -> bool:
    if index is not None:
        return one.get("index") == index
    return _text(part) is not None and _text(one) is not None and one.get("index") is None


def _grow(last: JsonDict, part: JsonDict) -> None:
    for key, value in part.items():
        if key in ("type", "index", "id"):
            continue
        before = last.get(key)
        last[key] = before + value if isinstance(before, str) and isinstance(value, str) else value
