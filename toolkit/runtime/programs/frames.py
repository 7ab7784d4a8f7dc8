"""Frames: how the toolkit and a process in the sandbox talk over pipes. Both sides use this module.

A frame is a small JSON object and a body of bytes, each with its length before it. Whatever comes out of the sandbox is
read as foreign data: lengths are bounded before anything is kept, and a broken frame ends the conversation.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_LENGTHS: Final = struct.Struct("!II")
MAX_HEAD: Final = 64 << 10
MAX_BODY: Final = 64 << 20


class Frame(NamedTuple):
    """One message."""

    head: dict[str, Any]
    body: bytes = b""


class BrokenFrame(Exception):
    """What was received is not a frame."""


def pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    """The bytes of a frame.

    >>> FrameBuffer().add(pack({"end": "ok"}, b"1"))
    [Frame(head={'end': 'ok'}, body=b'1')]
    """
    text = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


class FrameBuffer:
    """Puts frames together from the pieces in which they arrive."""

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self._max_body: Final = max_body
        self._pieces = bytearray()

    def add(self, data: bytes) -> list[Frame]:
        """The frames that are complete now; raises ``BrokenFrame``."""
        self._pieces += data
        return list(self._take())

    def _take(self) -> Iterator[Frame]:
        pieces = self._pieces
        while len(pieces) >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(pieces)
            if head > MAX_HEAD or body > self._max_body:
                raise BrokenFrame(f"a frame of {head} + {body} bytes is too large")
            end = _LENGTHS.size + head + body
            if len(pieces) < end:
                return
            frame = Frame(
                _read_head(bytes(pieces[_LENGTHS.size : _LENGTHS.size + head])), bytes(pieces[end - body : end])
            )
            del pieces[:end]
            yield frame


def _read_head(text: bytes) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        raise BrokenFrame("the head of a frame is not JSON") from None
    if not isinstance(head, dict):
        raise BrokenFrame("the head of a frame is not an object")
    return head
