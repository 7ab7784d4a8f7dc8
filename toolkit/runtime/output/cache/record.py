"""How one output lies in a file of the cache, and what a ref says about where.

A file holds records one behind the other: a header, the tool's name, the media type, the output, and the marks of its
lines. A ref is 128 random bits and the place of its record. It is honoured only if the header at that place carries the
same bits and a seal, made with the cache's secret key over the place, the header and the session. So a ref of another
session is as good as an invented one, and an output that contains what looks like a header opens nothing.
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

# magic, token, when it was made, bytes, lines, bytes of marks, of the tool's name, of the media type
_HEADER: Final = Struct("<4s16sdQQIHH")
_MAGIC: Final = b"out1"
HEADER_BYTES: Final = _HEADER.size + _SEAL_BYTES

_MAX_WORD_BYTES: Final = 1000


class Ref(NamedTuple):
    """A ref taken apart: what must be known, and where the record is."""

    token: bytes
    file_id: bytes
    offset: int

    @classmethod
    def new(cls, file_id: bytes, offset: int) -> Ref:
        return cls(secrets.token_bytes(_TOKEN_BYTES), file_id, offset)

    @classmethod
    def parse(cls, text: str) -> Ref | None:
        """None for what no ref of ours looks like; one that looks right may still be invented."""
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
    """What a record says about its output."""

    created: float
    size: int
    lines: int
    marks_bytes: int
    tool: str
    media_type: str | None


class Words(NamedTuple):
    """The texts of a record as bytes; a header gives their lengths."""

    tool: bytes
    media_type: bytes

    @classmethod
    def of(cls, tool: str, media_type: str | None) -> Words:
        return cls(_word(tool), _word(media_type or ""))

    @property
    def size(self) -> int:
        return len(self.tool) + len(self.media_type)


def _word(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")[:_MAX_WORD_BYTES]


class Sealer:
    """Makes and checks headers; holds the secret key."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def header(
        self, ref: Ref, session_id: str, words: Words, *, created: float, size: int, lines: int, marks_bytes: int
    ) -> bytes:
        """The header and the words behind it."""
        fixed = _HEADER.pack(
            _MAGIC, ref.token, created, size, lines, marks_bytes, len(words.tool), len(words.media_type)
        )
        spoken = words.tool + words.media_type
        return fixed + self._seal(ref, fixed, spoken, session_id) + spoken

    def opened(self, ref: Ref, session_id: str, header: bytes, spoken: bytes) -> Facts | None:
        """What the record says, if the ref and the session are those it was made for.

        ``spoken`` is as long as ``words_bytes`` says.
        """
        fixed, seal = header[: _HEADER.size], header[_HEADER.size :]
        magic, token, created, size, lines, marks_bytes, tool_bytes, _ = _HEADER.unpack(fixed)
        ours = secrets.compare_digest(token, ref.token)
        sealed = secrets.compare_digest(seal, self._seal(ref, fixed, spoken, session_id))
        if magic != _MAGIC or not ours or not sealed:
            return None
        tool = spoken[:tool_bytes].decode(errors="replace")
        return Facts(created, size, lines, marks_bytes, tool, spoken[tool_bytes:].decode(errors="replace") or None)

    def _seal(self, ref: Ref, fixed: bytes, spoken: bytes, session_id: str) -> bytes:
        # Every part but the last has a known length, so no two records give the same bytes.
        sealed = ref.place + fixed + spoken + session_id.encode("utf-8", "surrogatepass")
        return blake2b(sealed, key=self._key, digest_size=_SEAL_BYTES).digest()


def words_bytes(header: bytes) -> int:
    """How many bytes of words follow a header, if it is one."""
    *_, tool_bytes, media_type_bytes = _HEADER.unpack(header[: _HEADER.size])
    return int(tool_bytes) + int(media_type_bytes)
