"""Content blocks of Converse: text, images, documents and audio, both ways. Bytes are base64 text, as in its JSON."""

from __future__ import annotations

import re
from typing import Final

from toolkit.adapters.media.blocks import OFFICE, PDF, as_text, is_textual, media_type, stand_in
from toolkit.adapters.plain_json import JsonDict, plain_object
from toolkit.wire.content import BlockType, ContentBlock

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9()\[\]-]+")
_LONGEST_NAME: Final = 200
_MADE_NAME: Final = re.compile(r"document( \d+)?")
_IMAGES: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_DOCUMENTS: Final = {
    PDF: "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/html": "html",
    "text/csv": "csv",
    **{kind: ending for kind, ending in OFFICE.items() if not ending.startswith("ppt")},
}
_AUDIO: Final = {
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/aac": "aac",
    "audio/mp4": "mp4",
    "audio/webm": "webm",
}
_VIDEOS: Final = {
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
    "video/mpeg": "mpeg",
    "video/x-flv": "flv",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
# For each key of Converse: the neutral block and the formats, by media type. One with several media types is read as the
# first. The neutral form has videos among its documents.
_KINDS: Final[dict[str, tuple[BlockType, dict[str, str]]]] = {
    "image": ("image", _IMAGES),
    "document": ("document", _DOCUMENTS),
    "audio": ("audio", _AUDIO),
    "video": ("document", _VIDEOS),
}


def encode_part(block: ContentBlock) -> JsonDict:
    """The block for Converse, which takes bytes and objects in S3; a text in place of anything else.

    A document has no name yet unless its block has one: names must differ within a conversation, so ``encode_messages``
    sets them.
    """
    if block.text is not None:
        return {"text": block.text}
    media = _encode_media(block)
    return {"text": stand_in(block)} if media is None else media


def takes(block: ContentBlock) -> bool:
    """Whether a user's message takes this block of media."""
    return _encode_media(block) is not None


def takes_in_results(block: ContentBlock) -> bool:
    """Whether a result takes this block of media."""
    return block.type != "audio" and takes(block)


def _encode_media(block: ContentBlock) -> JsonDict | None:
    source, found = _encode_source(block), _find_format(block)
    if source is None or found is None:
        return None
    key, form = found
    name = {"name": _document_name(block.filename)} if key == "document" and block.filename else {}
    return {key: {"format": form, **name, "source": source}}


def _encode_source(block: ContentBlock) -> JsonDict | None:
    if block.data is not None:
        return {"bytes": block.data}
    return {"s3Location": {"uri": block.url}} if block.url is not None and block.url.startswith("s3://") else None


def _find_format(block: ContentBlock) -> tuple[str, str] | None:
    """Converse's key and format for a block of media."""
    media = media_type(block)
    for key, (kind, formats) in _KINDS.items():
        if block.type == kind and media in formats:
            return key, formats[media]
    return ("document", "txt") if block.type == "document" and is_textual(media) else None


def _document_name(filename: str) -> str:
    """A name in the characters that Converse allows, without the ending, which the format says.

    >>> _document_name("Q3 report, v2.pdf")
    'Q3 report v2'
    """
    stem = filename.rpartition(".")[0] or filename
    return " ".join(_NOT_IN_NAMES.sub(" ", stem).split())[:_LONGEST_NAME] or "document"


def decode_part(block: JsonDict) -> ContentBlock | None:
    """The neutral block; None if the neutral form has none for it."""
    if isinstance(block.get("text"), str):
        return ContentBlock("text", text=block["text"])
    for key, (kind, formats) in _KINDS.items():
        media = plain_object(block.get(key))
        for named, form in formats.items():
            if media.get("format") == form:
                return _decode_source(kind, named, media)
    return None


def _decode_source(kind: BlockType, media_type: str, media: JsonDict) -> ContentBlock | None:
    source, name = media.get("source"), as_text(media.get("name")) or ""
    filename = None if _MADE_NAME.fullmatch(name) else name or None
    if not isinstance(source, dict):
        return None
    if isinstance(source.get("bytes"), str):
        return ContentBlock(kind, media_type, data=source["bytes"], filename=filename)
    place = source.get("s3Location")
    if isinstance(place, dict) and isinstance(place.get("uri"), str):
        return ContentBlock(kind, media_type, url=place["uri"], filename=filename)
    return None
