"""A file read as a whole in order to change it: its bytes, its text, and its fingerprint for the write."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit.builtin.text.encoding import UTF_8_WITH_BOM, marked_encoding
from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.files.handles import OpenFile
    from toolkit.guard.files.write import Fingerprint

MAX_BYTES: Final = 10 * 1024 * 1024
"""Largest file that is read, changed and written as a whole."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A whole file at one moment."""

    path: str
    data: bytes
    sha256: str
    fingerprint: Fingerprint


def read_whole(file: OpenFile) -> WholeFile:
    """The whole file; raises ``TOO_LARGE`` past ``MAX_BYTES``."""
    data = b"" if file.size > MAX_BYTES else file.read(MAX_BYTES + 1)
    if file.size > MAX_BYTES or len(data) > MAX_BYTES:
        problem = f"'{file.path}' has {max(file.size, len(data))} bytes"
        message = f"{problem}; only files of at most {MAX_BYTES} bytes can be changed"
        raise ToolFailed("TOO_LARGE", message, path=file.path, size=file.size)
    fingerprint = file.fingerprint(data)
    return WholeFile(file.path, data, hashlib.sha256(data).hexdigest(), fingerprint)


def decode_text(file: WholeFile) -> str:
    """The text of the file; bytes that are not UTF-8 become surrogates, which ``encode_text`` turns back."""
    encoding = marked_encoding(file.data)
    if encoding is not None and encoding != UTF_8_WITH_BOM:
        message = (
            f"'{file.path}' is {encoding.upper()} text, but only UTF-8 can be edited; use write_file to replace it"
        )
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=file.path)
    if b"\0" in file.data:
        message = f"'{file.path}' is not a text file: it has NUL bytes ({len(file.data)} bytes in all)"
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=file.path)
    return file.data.decode(errors="surrogateescape")


def encode_text(text: str) -> bytes:
    """The bytes of a text from ``decode_text``."""
    return text.encode(errors="surrogateescape")


def refuse_mixed_encodings(path: str, before: str, after: str) -> None:
    """Refuse to add UTF-8 to a file in another encoding; ASCII may be added, and its own bytes stay as they are."""
    foreign = [char for char in set(before) if not char.isascii()]
    if not foreign or not all(map(_is_escaped, foreign)):
        return
    if any(not char.isascii() and not _is_escaped(char) for char in set(after)):
        message = (
            f"'{path}' is not UTF-8 and its encoding is unknown, so only ASCII can be added;"
            " use write_file to replace the whole file"
        )
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=path)


def _is_escaped(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def check_expected(path: str, expected: str | None, found: str | None) -> None:
    """Refuse a file whose digest is not ``expected``; ``found`` is None if there is no file."""
    if expected is None or expected.lower() == found:
        return
    if found is None:
        message = f"'{path}' does not exist, but expected_sha256 was given; check whether it was moved or deleted"
    else:
        problem = f"'{path}' has changed: its sha256 is {found}, which differs from expected_sha256"
        message = f"{problem}; read it again and redo the change"
    raise ToolFailed("CONFLICT", message, path=path, sha256=found)
