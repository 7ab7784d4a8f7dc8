"""Reads files as UTF-8 chunks, decoding those with a byte order mark; nothing is read from binary files."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final

from toolkit.builtin.text.encoding import marked_encoding

if TYPE_CHECKING:
    from toolkit.guard.files.handles import OpenFile

_CHUNK: Final = 128 * 1024


def read_text(file: OpenFile) -> Iterator[bytes] | None:
    """The text of an open file, read lazily; None if it is not text.

    Reads no more bytes than the file had when it was opened, so that reading a growing file ends.
    """
    return decode_chunks(_read_chunks(file))


def decode_chunks(chunks: Iterable[bytes]) -> Iterator[bytes] | None:
    """UTF-8 without a byte order mark, up to the first chunk with a NUL; None if that is the first one."""
    left = iter(chunks)
    first = next(left, b"")
    encoding = marked_encoding(first)
    text: Iterator[bytes] = chain((first,), left)
    if encoding is not None:
        text = _decode(text, encoding)
        first = next(text, b"")
        text = chain((first,), text)
    return None if b"\0" in first else takewhile(_is_text, text)


def _read_chunks(file: OpenFile) -> Iterator[bytes]:
    left = file.size
    while left > 0 and (chunk := file.read(min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _is_text(chunk: bytes) -> bool:
    return b"\0" not in chunk


def _decode(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", True).encode()
