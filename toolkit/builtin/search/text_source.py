"""What a file holds as text: decoded where a mark tells the encoding, and nothing at all where it is no text."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final

from toolkit.builtin.text.encoding import marked_encoding

if TYPE_CHECKING:
    from toolkit.guard.fs.handles import OpenFile

_CHUNK: Final = 128 * 1024


def text_of_file(file: OpenFile) -> Iterator[bytes] | None:
    """The text of an open file, read as it is asked for.

    No more is read than the file had when it was opened: one that grows as fast as it is read has an end, too.
    """
    return text_of(_pieces(file))


def text_of(pieces: Iterable[bytes]) -> Iterator[bytes] | None:
    """UTF-8 without a mark up to the first piece that holds a NUL; None if that is the first one."""
    left = iter(pieces)
    first = next(left, b"")
    encoding = marked_encoding(first)
    text: Iterator[bytes] = chain((first,), left)
    if encoding is not None:
        text = _decoded(text, encoding)
        first = next(text, b"")
        text = chain((first,), text)
    return None if b"\0" in first else takewhile(_is_text, text)


def _pieces(file: OpenFile) -> Iterator[bytes]:
    left = file.size
    while left > 0 and (piece := file.read(min(left, _CHUNK))):
        left -= len(piece)
        yield piece


def _is_text(piece: bytes) -> bool:
    return b"\0" not in piece


def _decoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", True).encode()
