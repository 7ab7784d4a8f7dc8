"""Request bodies: JSON, forms, multipart, text and bytes."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Final, TypedDict
from urllib.parse import quote_plus

from toolkit.errors import InvalidArguments
from toolkit.packs.openapi.parameter_styles import (
    percent_encode,
    percent_encode_except_reserved,
    query_pairs,
    to_json,
    to_text,
)

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


class BodyEncoding(TypedDict, total=False):
    """How one property of a form, or one part, is encoded, where that is not the default."""

    contentType: str
    base64: bool
    """The property is base64 of bytes, and the bytes are sent."""
    style: str
    explode: bool
    allowReserved: bool


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON, whatever parameters it has.

    >>> [is_json(name) for name in ("application/problem+json; charset=utf-8", "text/html")]
    [True, False]
    """
    name = media_type.partition(";")[0].strip().lower()
    return name in ("application/json", "text/json") or name.endswith("+json")


def encode_body(
    value: object, media_type: str, encoding: Mapping[str, BodyEncoding], *, is_base64: bool
) -> tuple[str, bytes]:
    """The content type and the bytes to send for one value."""
    if is_json(media_type):
        return media_type, _encode_utf8(to_json(value))
    if media_type == FORM:
        return media_type, _encode_form(_require_object(value), encoding).encode()
    if media_type == MULTIPART:
        boundary = secrets.token_hex(16)
        return f"{media_type}; boundary={boundary}", b"".join(
            _encode_multipart(_require_object(value), encoding, boundary)
        )
    if is_base64:
        return media_type, _decode_base64("body", value)
    return f"{media_type}; charset=utf-8", _encode_utf8(to_text(value))


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments("text must not contain lone surrogates") from None


def _require_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidArguments("the body of a form must be an object")
    return value


def _decode_base64(name: str, value: object) -> bytes:
    try:
        return base64.b64decode(to_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArguments(f"{name}: bytes must be base64-encoded") from None


def _encode_form(value: dict[str, object], encoding: Mapping[str, BodyEncoding]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, item in value.items():
        how = encoding.get(name, {})
        if "style" in how or "explode" in how or "allowReserved" in how:
            style = how.get("style", "form")
            encode = percent_encode_except_reserved if how.get("allowReserved") else percent_encode
            pairs += query_pairs(name, item, style, how.get("explode", style == "form"), encode)
        else:
            # Objects are sent as JSON, the default for such a property.
            items = item if isinstance(item, list) else [] if item is None else [item]
            pairs += [(quote_plus(name), quote_plus(to_text(each))) for each in items]
    return "&".join(f"{name}={text}" for name, text in pairs)


def _encode_multipart(value: dict[str, object], encoding: Mapping[str, BodyEncoding], boundary: str) -> Iterator[bytes]:
    for name, item in value.items():
        how = encoding.get(name, {})
        for each in item if isinstance(item, list) else [] if item is None else [item]:
            yield f"--{boundary}\r\n".encode() + _encode_part(name, each, how) + b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _encode_part(name: str, value: object, how: BodyEncoding) -> bytes:
    head = f'content-disposition: form-data; name="{_escape_quoted(name)}"'
    if how.get("base64"):
        content, default = _decode_base64(name, value), "application/octet-stream"
        head += f'; filename="{_escape_quoted(name)}"'
    else:
        is_text = isinstance(value, str)
        content, default = _encode_utf8(to_text(value)), "text/plain; charset=utf-8" if is_text else "application/json"
    return _encode_utf8(f"{head}\r\ncontent-type: {how.get('contentType', default)}\r\n\r\n") + content


def _escape_quoted(name: str) -> str:
    """A name for use between quotes, escaped as browsers do it."""
    return re.sub(r'[\x00-\x1f"\x7f]', lambda match: f"%{ord(match[0]):02X}", name)
