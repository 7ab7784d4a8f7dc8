"""Content blocks of Converse: text, images, documents and audio, both ways. Bytes are base64 text, as in its JSON."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.media import media_note
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import BlockType, ContentBlock

_WORD: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_EXCEL: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# The format of each media type. A format with several media types is read as the first.
_MEDIA_TYPES: Final[dict[BlockType, dict[str, str]]] = {
    "image": {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"},
    "document": {
        "application/pdf": "pdf",
        "text/plain": "txt",
        "text/markdown": "md",
        "text/html": "html",
        "text/csv": "csv",
        "application/msword": "doc",
        _WORD: "docx",
        "application/vnd.ms-excel": "xls",
        _EXCEL: "xlsx",
    },
    "audio": {
        "audio/mpeg": "mp3",
        "audio/wav": "wav",
        "audio/x-wav": "wav",
        "audio/flac": "flac",
        "audio/ogg": "ogg",
        "audio/opus": "opus",
        "audio/aac": "aac",
        "audio/mp4": "mp4",
        "audio/webm": "webm",
    },
}
_FORMATS: Final[dict[BlockType, dict[str, str]]] = {
    kind: {form: media for media, form in reversed(table.items())} for kind, table in _MEDIA_TYPES.items()
}


def encode_part(block: ContentBlock) -> JsonDict:
    """The block for Converse, which takes bytes and objects in S3; anything else becomes a note.

    A document has no name yet: names must differ within a conversation, so ``encode_messages`` sets them.
    """
    if block.type == "text":
        return {"text": block.text}
    source = _encode_source(block)
    return {"text": media_note(block)} if source is None else {block.type: {"format": _format(block), "source": source}}


def _encode_source(block: ContentBlock) -> JsonDict | None:
    if block.data is not None:
        return {"bytes": block.data}
    return {"s3Location": {"uri": block.url}} if block.url is not None and block.url.startswith("s3://") else None


def _format(block: ContentBlock) -> str:
    known = _MEDIA_TYPES[block.type]
    if block.media_type is None:
        return next(iter(known.values()))
    if block.media_type in known:
        return known[block.media_type]
    main, _, form = block.media_type.partition("/")
    return "txt" if block.type == "document" and main == "text" else form


def decode_part(block: JsonDict) -> ContentBlock | None:
    """The neutral block; None if the neutral form has none for it."""
    if isinstance(block.get("text"), str):
        return ContentBlock("text", text=block["text"])
    for kind, formats in _FORMATS.items():
        media = block.get(kind)
        if isinstance(media, dict) and media.get("format") in formats:
            return _decode_source(kind, formats[media["format"]], media.get("source"))
    return None


def _decode_source(kind: BlockType, media_type: str, source: Any) -> ContentBlock | None:
    if not isinstance(source, dict):
        return None
    if isinstance(source.get("bytes"), str):
        return ContentBlock(kind, media_type, data=source["bytes"])
    place = source.get("s3Location")
    if isinstance(place, dict) and isinstance(place.get("uri"), str):
        return ContentBlock(kind, media_type, url=place["uri"])
    return None
