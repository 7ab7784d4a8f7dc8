"""Content of LangChain's messages, both ways: its standard blocks, OpenAI's parts, which it also takes, and bare texts.

Blocks are sent in LangChain's standard form, which all its models read; one that came in another form keeps that form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from toolkit.adapters.lossless import add_difference, keep_parts, restore, restore_parts
from toolkit.adapters.media.blocks import as_text, media_type
from toolkit.adapters.openai_chat.content import decode_part as decode_openai_part
from toolkit.adapters.openai_chat.content import encode_part as encode_openai_part
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.values import parse_json
from toolkit.wire.call import ToolCall
from toolkit.wire.content import BlockType, ContentBlock

Style: TypeAlias = Literal["standard", "openai", "bare"]
_MEDIA: Final[dict[str, BlockType]] = {"image": "image", "audio": "audio", "file": "document", "video": "document"}
_NAMES: Final[dict[str, str]] = {"image": "image", "audio": "audio", "document": "file"}
# Blocks that repeat a call from the message's list of calls, and their key for the arguments.
_ARGUMENTS: Final = {"tool_use": "input", "tool_call": "args"}
_FRAGMENTS: Final = ("input_json_delta", "tool_call_chunk")


# -- content as blocks -------------------------------------------------------------------------------------------------


def encode_blocks(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[Any]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    styles: JsonDict = kept.get("styles", {})
    parts = [_encode_part(block, styles.get(str(at), "standard")) for at, block in enumerate(blocks)]
    return restore_parts(parts, kept)


def decode_blocks(parts: Sequence[Any]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    read = [_decode_part(part) for part in parts]
    kept = keep_parts(parts, [None if block is None else _encode_part(block, style) for block, style in read])
    decoded = [(block, style) for block, style in read if block is not None]
    styles = {str(at): style for at, (_, style) in enumerate(decoded) if style != "standard"}
    return [block for block, _ in decoded], {**kept, **({"styles": styles} if styles else {})}


def content_text(content: object) -> str:
    """The text of a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    return "".join(
        text for part in (content if isinstance(content, list) else ()) if (text := _part_text(part)) is not None
    )


def _part_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) and part.get("type") in ("text", None) else None
    return text if isinstance(text, str) else None


def _decode_part(part: object) -> tuple[ContentBlock | None, Style]:
    if isinstance(part, str):
        return ContentBlock("text", text=part), "bare"
    if not isinstance(part, dict):
        return None, "standard"
    kind = _MEDIA.get(str(part.get("type")))
    if kind is not None:
        for ours, theirs in (("data", "base64"), ("url", "url"), ("file_id", "file_id")):
            if isinstance(part.get(theirs), str):
                made: Any = {
                    ours: part[theirs],
                    "media_type": as_text(part.get("mime_type")),
                    "filename": _read_name(part),
                }
                return ContentBlock(kind, **made), "standard"
    block = decode_openai_part(part)
    return block, "standard" if block is None or block.type == "text" else "openai"


def _encode_part(block: ContentBlock, style: Style) -> Any:
    if style == "bare" and block.text is not None:
        return block.text
    if style == "openai" or block.text is not None:
        return encode_openai_part(block)
    is_video = block.type == "document" and (block.media_type or "").startswith("video/")
    made: JsonDict = {"type": "video" if is_video else _NAMES[block.type]}
    for ours, theirs in (("data", "base64"), ("url", "url"), ("file_id", "file_id")):
        if (value := getattr(block, ours)) is not None:
            made[theirs] = value
    if block.media_type is not None:
        made["mime_type"] = block.media_type
    elif block.data is not None:
        made["mime_type"] = media_type(block)  # LangChain demands one with data
    return {**made, "extras": {"filename": block.filename}} if block.filename else made


def _read_name(part: JsonDict) -> str | None:
    """The name of a file: integrations look for it in these places."""
    extras = part.get("extras")
    return as_text(part.get("filename")) or as_text(extras.get("filename") if isinstance(extras, dict) else None)


# -- content of a model's turn, which is one text in the neutral form ----------------------------------------------------


def decode_layout(content: list[Any]) -> JsonDict:
    """The layout of a turn: an entry for each part, which is the length of a text, or a native part (thinking, citations)."""
    layout: list[Any] = []
    for part in content:
        text = _part_text(part)
        if text is None:
            layout.append({"native": part})
        else:
            layout.append(add_difference({"text": len(text)}, part, {"type": "text", "text": text}))
    return {"layout": layout}


def encode_layout(text: str, calls: Sequence[ToolCall], layout: list[JsonDict]) -> list[Any]:
    """The parts of a layout. A changed text takes the place of the first; copies of calls follow the calls."""
    lengths = [part["text"] for part in layout if "text" in part]
    is_whole = sum(lengths) == len(text)
    by_id = {call.id: call for call in calls}
    parts: list[Any] = []
    rest: str = text
    for part in layout:
        if "native" in part:
            parts += _encode_native(part["native"], by_id)
            continue
        here, rest = (rest[: part["text"]], rest[part["text"] :]) if is_whole else (rest, "")
        if here or is_whole:
            parts.append(restore({"type": "text", "text": here}, part))
    return [*parts, {"type": "text", "text": rest}] if rest else parts


def _encode_native(part: Any, calls: dict[str, ToolCall]) -> list[Any]:
    """The part itself; the copy of a call gets the arguments of the call, and is left out if that was removed."""
    key = _ARGUMENTS.get(as_text(part.get("type")) or "") if isinstance(part, dict) else None
    if key is None or not isinstance(part.get("id"), str):
        return [part]
    call = calls.get(part["id"])
    if call is None:
        return []
    copied = part.get(key)
    value = parse_json(copied) if isinstance(copied, str) else copied  # streams leave it as text
    return [part] if value == call.arguments else [{**part, key: call.arguments}]


# -- content that is streamed in pieces ------------------------------------------------------------------------------------


def feed_content(so_far: list[Any], content: object) -> None:
    """Adds one chunk's content: parts with the same index are one part, and so are texts in a row."""
    parts: list[Any] = content if isinstance(content, list) else [content] if content else []
    for part in parts:
        text = _part_text(part)
        index = part.get("index") if isinstance(part, dict) else None
        if isinstance(part, dict) and part.get("type") in _FRAGMENTS:
            continue  # pieces of calls, which also come outside the content
        last = next((one for one in reversed(so_far) if _continues(one, part, index)), None)
        if last is None:
            so_far.append(dict(part) if isinstance(part, dict) else {"type": "text", "text": text or ""})
        elif text is not None:
            last["text"] = (last.get("text") or "") + text
        else:
            _extend_part(last, part)


def _continues(one: JsonDict, part: Any, index: object) -> bool:
    if index is not None:
        return one.get("index") == index
    return _part_text(part) is not None and _part_text(one) is not None and one.get("index") is None


def _extend_part(last: JsonDict, part: JsonDict) -> None:
    for key, value in part.items():
        if key not in ("type", "index", "id"):
            last[key] = _join(last.get(key), value)


def _join(before: Any, value: Any) -> Any:
    """A value that comes in pieces: texts are joined, also inside objects and items with the same index."""
    if isinstance(before, str) and isinstance(value, str):
        return before + value
    if isinstance(before, dict) and isinstance(value, dict):
        made = dict(before)
        _extend_part(made, value)
        return made
    if isinstance(before, list) and isinstance(value, list):
        return _join_items(before, value)
    return value


def _join_items(before: list[Any], more: list[Any]) -> list[Any]:
    joined = list(before)
    for item in more:
        index = item.get("index") if isinstance(item, dict) else None
        same = [at for at, one in enumerate(joined) if isinstance(one, dict) and one.get("index") == index]
        if index is None or not same:
            joined.append(item)
        else:
            joined[same[-1]] = _join(joined[same[-1]], item)
    return joined
