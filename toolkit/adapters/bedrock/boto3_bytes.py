"""Bytes for boto3, which wants them raw where Converse's JSON has base64."""

from __future__ import annotations

import base64
from typing import Any, Final

# JSON of tools and users: nothing in it is media, whatever it looks like.
_FOREIGN: Final = frozenset({"input", "json"})


def boto3_messages(encoded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The result of ``encode_messages`` for ``client.converse(messages=...)``.

    >>> image = {"image": {"format": "png", "source": {"bytes": "AAEC"}}}
    >>> boto3_messages([{"role": "user", "content": [image]}])[0]["content"][0]["image"]["source"]["bytes"]
    b'\\x00\\x01\\x02'
    """
    return [_with_bytes(message) for message in encoded]


def _with_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: item if key in _FOREIGN else _decode_bytes(key, item) for key, item in value.items()}


def _decode_bytes(key: str, value: Any) -> Any:
    if key == "redactedContent" and isinstance(value, str):
        return base64.b64decode(value)
    if key == "source" and isinstance(value, dict) and isinstance(value.get("bytes"), str):
        return {**value, "bytes": base64.b64decode(value["bytes"])}
    return _with_bytes(value)
