"""The format of one output in a file of the cache, and of the refs that point to it.

A file holds records one after the other: a header, the tool's name, the media type, the output, and the marks of its
lines. A ref is 128 random bits and the place of its record. It is accepted only if the header at that place has the same
bits and a valid seal, made with the cache's secret key over the place, the header and the session. So a ref of another
session is worth no more than an invented one, and bytes of an output that look like a header are not accepted.
"""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

FILE_ID_BYTES: Final = 5
_TOKEN_BYTES: Final = 16
_OFFSET_BYTES: Final = 3
_SEAL_BYTES: Final = 16
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)

# magic, token, creation time, bytes, lines, bytes of marks, of the tool's name, of the media type
_HEADER: Final = Struct("<4s16sdQQIHH")
_MAGIC: Final = b"out1"
HEADER_BYTES: Final = _HEADER.size + _SEAL_BYTES

_MAX_WORD_BYTES: Final = 1000


class Ref(NamedTuple):
    """A parsed ref: the secret token, and where the record is."""

    token: bytes
    file_id: bytes
    offset: int

    @classmethod
    def new(cls, file_id: bytes, offset: int) -> Ref:
        return cls(secrets.token_bytes(_TOKEN_BYTES), file_id, offset)

    @classmethod
    def parse(cls, text: str) -> Ref | None:
        """None for text that does not have the form of a ref. A ref of the right form may still be invented."""
        if _TEXT.fullmatch(text) is None:
            return None
        data = urlsafe_b64decode(text)
        place = _TOKEN_BYTES + FILE_ID_BYTES
        return cls(data[:_TOKEN_BYTES], data[_TOKEN_BYTES:place], int.from_bytes(data[place:], "little"))

    @property
    def place(self) -> bytes:
        return self.file_id + self.offset.to_bytes(_OFFSET_BYTES, "little")

    def __str__(self) -> str:
        return urlsafe_b64encode(self.token + self.place).decode()


class Facts(NamedTuple):
    """What a record declares about its output."""

    created: float
    size: int
    lines: int
    marks_bytes: int
    tool: str
    media_type: str | None


class RecordLabels(NamedTuple):
    """The tool's name and the media type as bytes; a header holds their lengths."""

    tool: bytes
    media_type: bytes

    @classmethod
    def encode(cls, tool: str, media_type: str | None) -> RecordLabels:
        return cls(_label(tool), _label(media_type or ""))

    @property
    def size(self) -> int:
        return len(self.tool) + len(self.media_type)


def _label(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")[:_MAX_WORD_BYTES]


class Sealer:
    """Makes and checks headers; holds the secret key."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def header(
        self,
        ref: Ref,
        session_id: str,
        labels: RecordLabels,
        *,
        created: float,
        size: int,
        lines: int,
        marks_bytes: int,
    ) -> bytes:
        """The header, followed by the labels."""
        fixed = _HEADER.pack(
            _MAGIC, ref.token, created, size, lines, marks_bytes, len(labels.tool), len(labels.media_type)
        )
        labels_data = labels.tool + labels.media_type
        return fixed + self._seal(ref, fixed, labels_data, session_id) + labels_data

    def open(self, ref: Ref, session_id: str, header: bytes, labels_data: bytes) -> Facts | None:
        """The facts of the record, if the ref and the session are those it was made for; else None.

        ``labels_data`` has the length that ``labels_bytes`` returns.
        """
        fixed, seal = header[: _HEADER.size], header[_HEADER.size :]
        magic, token, created, size, lines, marks_bytes, tool_bytes, _ = _HEADER.unpack(fixed)
        ours = secrets.compare_digest(token, ref.token)
        sealed = secrets.compare_digest(seal, self._seal(ref, fixed, labels_data, session_id))
        if magic != _MAGIC or not ours or not sealed:
            return None
        tool = labels_data[:tool_bytes].decode(errors="replace")
        return Facts(created, size, lines, marks_bytes, tool, labels_data[tool_bytes:].decode(errors="replace") or None)

    def _seal(self, ref: Ref, fixed: bytes, labels_data: bytes, session_id: str) -> bytes:
        # Every part but the last has a known length, so two records never produce the same bytes.
        sealed = ref.place + fixed + labels_data + session_id.encode("utf-8", "surrogatepass")
        return blake2b(sealed, key=self._key, digest_size=_SEAL_BYTES).digest()


def labels_bytes(header: bytes) -> int:
    """How many bytes of labels follow this header."""
    *_, tool_bytes, media_type_bytes = _HEADER.unpack(header[: _HEADER.size])
    return int(tool_bytes) + int(media_type_bytes)
