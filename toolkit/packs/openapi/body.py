"""Bodies of requests: JSON, forms, parts, text and bytes."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Final, TypedDict
from urllib.parse import quote_plus

from toolkit.errors import InvalidArguments
from toolkit.packs.openapi.styles import as_json, encoded, encoded_but_reserved, in_query, text_of

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


class Encoding(TypedDict, total=False):
    """How one property of a form, or one part, is written, where that is not the usual way."""

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


def written(value: object, media_type: str, encoding: Mapping[str, Encoding], *, is_base64: bool) -> tuple[str, bytes]:
    """The media type to name and the bytes to send for one value."""
    if is_json(media_type):
        return media_type, _utf8(as_json(value))
    if media_type == FORM:
        return media_type, _form(_mapping(value), encoding).encode()
    if media_type == MULTIPART:
        boundary = secrets.token_hex(16)
        return f"{media_type}; boundary={boundary}", b"".join(_multipart(_mapping(value), encoding, boundary))
    if is_base64:
        return media_type, _bytes("body", value)
    return f"{media_type}; charset=utf-8", _utf8(text_of(value))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments("a text must not hold half characters") from None


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidArguments("the body of a form must be an object")
    return value


def _bytes(name: str, value: object) -> bytes:
    try:
        return base64.b64decode(text_of(value), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArguments(f"{name}: bytes must be given as base64") from None


def _form(value: dict[str, object], encoding: Mapping[str, Encoding]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, item in value.items():
        how = encoding.get(name, {})
        if "style" in how or "explode" in how or "allowReserved" in how:
            style = how.get("style", "form")
            encode = encoded_but_reserved if how.get("allowReserved") else encoded
            pairs += in_query(name, item, style, how.get("explode", style == "form"), encode)
        else:
            # What is no plain value goes as JSON, the usual content of such a property.
            items = item if isinstance(item, list) else [] if item is None else [item]
            pairs += [(quote_plus(name), quote_plus(text_of(each))) for each in items]
    return "&".join(f"{name}={text}" for name, text in pairs)


def _multipart(value: dict[str, object], encoding: Mapping[str, Encoding], boundary: str) -> Iterator[bytes]:
    for name, item in value.items():
        how = encoding.get(name, {})
        for each in item if isinstance(item, list) else [] if item is None else [item]:
            yield f"--{boundary}\r\n".encode() + _part(name, each, how) + b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _part(name: str, value: object, how: Encoding) -> bytes:
    head = f'content-disposition: form-data; name="{_quoted(name)}"'
    if how.get("base64"):
        content, usual = _bytes(name, value), "application/octet-stream"
        head += f'; filename="{_quoted(name)}"'
    else:
        is_text = isinstance(value, str)
        content, usual = _utf8(text_of(value)), "text/plain; charset=utf-8" if is_text else "application/json"
    return _utf8(f"{head}\r\ncontent-type: {how.get('contentType', usual)}\r\n\r\n") + content


def _quoted(name: str) -> str:
    """A name between quotes, which it cannot leave: as browsers write it."""
    return re.sub(r'[\x00-\x1f"\x7f]', lambda match: f"%{ord(match[0]):02X}", name)
