"""Media in content blocks: their types, names and texts, what stands in for media that a provider does not take, and
moving media to where it takes them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.values import JsonDict, result_blocks
from toolkit.wire.content import BlockType, ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage

COMMON_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images that every provider with images takes."""
OFFICE: Final = {
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
}
"""Office documents, with the endings of their names."""
PDF: Final = "application/pdf"
Takes: TypeAlias = Callable[[ContentBlock], bool]
"""Whether a provider takes this block of media in some place."""
IN_PLACE: Final[JsonDict] = {"media_in_place": True}
"""What a decoder stores for a message whose media came in a place where they would be moved away: that server takes them."""
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)(?:;[^;,]+=[^;,]*)*;base64,(?P<data>.*)", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_OTHER_SCHEME: Final = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_TEXTUAL: Final = re.compile(
    r"text/.*|application/(.+\+)?(json|xml|yaml|x-yaml|javascript|sql|x-sh|toml)|image/svg\+xml"
)
_DEFAULTS: Final[dict[BlockType, str]] = {
    "text": "text/plain", "image": "image/png", "audio": "audio/wav", "document": PDF
}  # fmt: skip
_USUAL: Final = {
    "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "application/x-pdf": PDF,
    "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav", "audio/mp3": "audio/mpeg",
    "audio/x-flac": "audio/flac", "audio/x-m4a": "audio/mp4",
}  # fmt: skip
_STANDARD: Final = str.maketrans("-_", "+/")
_UNKNOWN: Final = "application/octet-stream"
# How the base64 of a file begins, for blocks that do not say their type.
_BEGINNINGS: Final[dict[BlockType, dict[str, str]]] = {
    "text": {},
    "image": {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"},
    "audio": {"UklGR": "audio/wav", "SUQz": "audio/mpeg", "T2dnUw": "audio/ogg", "ZkxhQw": "audio/flac"},
    "document": {"JVBERi": PDF},
}
_LEAD: Final = "[Attached automatically: media from the messages above, which could not be sent there]"


# -- types, names and places ---------------------------------------------------------------------------------------------


def media_type(block: ContentBlock) -> str:
    """The media type of a block in its usual spelling. One that does not say is recognised by its data, else by the kind of
    block.

    >>> media_type(ContentBlock("image", "image/JPG", data="AAAA")), media_type(ContentBlock("image", data="/9j/4AAQ"))
    ('image/jpeg', 'image/jpeg')
    """
    kind = (block.media_type or _UNKNOWN).partition(";")[0].strip().lower()
    if kind != _UNKNOWN:
        return _USUAL.get(kind, kind)
    found = (known for begin, known in _BEGINNINGS[block.type].items() if (block.data or "").startswith(begin))
    return next(found, kind if block.media_type is not None else _DEFAULTS[block.type])


def is_textual(kind: str) -> bool:
    """Whether files of this media type are text."""
    return _TEXTUAL.fullmatch(kind) is not None


def as_text(value: object) -> str | None:
    """A text that a provider sent, such as a media type or a name; None for anything else."""
    return value if isinstance(value, str) else None


def file_name(block: ContentBlock) -> str:
    """The name of a file, with an ending, for providers that demand one.

    >>> file_name(ContentBlock("document", "application/pdf", data="JVBERi0="))
    'document.pdf'
    """
    name = block.filename or block.type
    if "." in name:
        return name
    kind = media_type(block)
    return (
        f"{name}.{OFFICE.get(kind) or ('txt' if kind == 'text/plain' else kind.rpartition('/')[2].partition('+')[0])}"
    )


def is_web_url(block: ContentBlock) -> bool:
    """Whether the block is at an address that any provider could load, unlike ``gs:`` and ``s3:``."""
    return block.url is not None and not _OTHER_SCHEME.match(block.url)


def is_own_file(block: ContentBlock, *owners: str) -> bool:
    """Whether the block is a file that is stored at one of these providers; a file without an owner may be."""
    return block.file_id is not None and block.provider in (None, *owners)


def media_url(block: ContentBlock) -> str:
    """The URL of a block, or a ``data:`` URL with its data.

    >>> media_url(ContentBlock("image", "image/png", data="AAAA"))
    'data:image/png;base64,AAAA'
    """
    return block.url if block.url is not None else f"data:{media_type(block)};base64,{block.data}"


def block_from_url(kind: BlockType, url: object) -> ContentBlock | None:
    """The block for a URL, with its data if it is a ``data:`` URL; None if it is not a text."""
    if not isinstance(url, str):
        return None
    found = _DATA_URL.fullmatch(url)
    return ContentBlock(kind, url=url) if found is None else ContentBlock(kind, found["type"], data=found["data"])


def block_from_file_data(data: object) -> ContentBlock | None:
    """The document in OpenAI's ``file_data``: a ``data:`` URL, or bare base64 of unknown type."""
    block = block_from_url("document", data)
    if block is None or block.url is None:
        return block
    return ContentBlock("document", data=block.url) if _BASE64.fullmatch(block.url) else None


def standard_base64(data: str) -> str:
    """Base64 in the alphabet that all providers read, with padding; Google's SDK writes the one for URLs.

    >>> standard_base64("-__-"), standard_base64("_w")
    ('+//+', '/w==')
    """
    return data.translate(_STANDARD) + "=" * (-len(data) % 4)


# -- in place of media ---------------------------------------------------------------------------------------------------


def stand_in(block: ContentBlock, *owners: str) -> str:
    """A text in place of media that the provider does not take: the text of a file that is text, else a note.

    :param owners: whose stored files the provider can read.
    """
    text = document_text(block)
    if text is None:
        return media_note(block, *owners)
    return f"[{block.filename or media_type(block)}]\n{text}"


def document_text(block: ContentBlock) -> str | None:
    """The text of a file that is text and whose data is here; None for any other."""
    if block.data is None or block.type == "audio" or not is_textual(media_type(block)):
        return None
    try:
        return base64.b64decode(block.data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def media_note(block: ContentBlock, *owners: str) -> str:
    """A line of text in place of the block: what it is, and its address if it has one.

    >>> media_note(ContentBlock("audio", "audio/wav", data="AAAA"))
    '[audio/wav, 3 bytes: omitted, this model does not accept it]'
    """
    if block.file_id is not None and not is_own_file(block, *owners):
        return f"[{describe(block)}: omitted, only {block.provider} can read it]"
    return f"[{describe(block)}: omitted, this model does not accept it]"


def describe(block: ContentBlock) -> str:
    """A block of media in a few words.

    >>> describe(ContentBlock("document", "application/pdf", data="AAAA", filename="a.pdf"))
    'a.pdf, application/pdf, 3 bytes'
    """
    what = block.media_type or block.type
    named = f"{block.filename}, {what}" if block.filename else what
    if block.data is not None:
        return f"{named}, {len(block.data) * 3 // 4 - block.data[-2:].count('=')} bytes"
    return f"{named} at {block.url or block.file_id}"


# -- moving media --------------------------------------------------------------------------------------------------------
#
# Most providers take images and files in a user's message, but only text in the result of a tool or in a model's message.
# There the message keeps a note, and the media follow in a user's message: after a model's message, or after all results of
# its calls, because nothing may come between these.


def never(block: ContentBlock) -> bool:
    """For a place that takes only text."""
    return False


def move_media(
    messages: Iterable[ChatMessage],
    provider: str,
    *,
    by_users: Takes,
    in_results: Takes,
    by_models: Takes = never,
    leave_in_place: bool = True,
) -> Iterator[ChatMessage]:
    """The messages, with media that do not go where they are moved into a user's message.

    Media that the provider takes nowhere stay where they are.

    :param by_users: which media a user's message may have.
    :param in_results: which media a tool's result may have.
    :param by_models: which media a message of the model may have; a system text may have none.
    :param leave_in_place: whether media stay in messages that came from this provider with media in them.
    """
    moved: list[ContentBlock] = []
    for message in messages:
        if moved and not isinstance(message, ToolResultMessage):
            yield _attachments(moved)
            moved = []
        in_place = leave_in_place and IN_PLACE.items() <= provider_metadata(message.metadata, provider).items()
        if isinstance(message, AssistantToolCallMessage) or in_place:
            yield message
            continue
        if isinstance(message, ToolResultMessage):
            blocks, allowed = result_blocks(message.result), in_results
        else:
            blocks = None if message.role == "user" or isinstance(message.content, str) else message.content
            allowed = by_models if message.role == "assistant" else never
        here, away = _split(blocks, _source(message), allowed, by_users) if blocks is not None else ([], [])
        yield _with_blocks(message, here) if away else message
        moved += away
    if moved:
        yield _attachments(moved)


def _split(
    blocks: Sequence[ContentBlock], source: str, allowed: Takes, by_users: Takes
) -> tuple[list[ContentBlock], list[ContentBlock]]:
    """The blocks that stay, with notes for the others; and those, each after a line that says where it comes from."""
    here: list[ContentBlock] = []
    away: list[ContentBlock] = []
    for block in blocks:
        if block.text is not None or allowed(block) or not by_users(block):
            here.append(block)
            continue
        here.append(ContentBlock("text", text=f"[{describe(block)}: attached in the next user message]"))
        away += [ContentBlock("text", text=f"[{describe(block)}, {source}]"), block]
    return here, away


def _source(message: TextMessage | ToolResultMessage) -> str:
    if isinstance(message, ToolResultMessage):
        return f"from the result of {message.result.name or 'a tool'} ({message.result.tool_call_id})"
    return f"from the {message.role}"


def _with_blocks(message: TextMessage | ToolResultMessage, blocks: list[ContentBlock]) -> ChatMessage:
    """The message with other blocks; one text if only texts are left, which every server takes."""
    texts = [block.text for block in blocks if block.text is not None]
    text = "\n".join(texts) if len(texts) == len(blocks) else None
    if isinstance(message, TextMessage):
        return replace(message, content=blocks if text is None else text)
    result = message.result
    made = replace(result, value=tuple(blocks)) if text is None else replace(result, kind="text", value=text)
    return replace(message, result=made)


def _attachments(moved: list[ContentBlock]) -> TextMessage:
    return TextMessage("user", [ContentBlock("text", text=_LEAD), *moved])
