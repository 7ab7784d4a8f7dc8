"""A file read as a whole, to be changed: its bytes, its text, and what it must still be when it is replaced."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit.builtin.text.encoding import UTF_8_WITH_BOM, marked_encoding
from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.fs.handles import OpenFile
    from toolkit.guard.fs.write import Fingerprint

MAX_BYTES: Final = 10 * 1024 * 1024
"""How large a file may be that is read, changed and written as a whole."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """All of a file at one moment."""

    path: str
    data: bytes
    sha256: str
    fingerprint: Fingerprint


def read_whole(file: OpenFile) -> WholeFile:
    """Everything in the file, refused as ``TOO_LARGE`` past ``MAX_BYTES``."""
    data = b"" if file.size > MAX_BYTES else file.read(MAX_BYTES + 1)
    if file.size > MAX_BYTES or len(data) > MAX_BYTES:
        words = f"'{file.path}' has {max(file.size, len(data))} bytes; only files of up to {MAX_BYTES} can be changed"
        raise ToolFailed("TOO_LARGE", words, path=file.path, size=file.size)
    fingerprint = file.fingerprint(data)
    return WholeFile(file.path, data, hashlib.sha256(data).hexdigest(), fingerprint)


def text_of(file: WholeFile) -> str:
    """The file's text; bytes that are not UTF-8 are carried along, so that ``bytes_of`` gives them back unchanged."""
    encoding = marked_encoding(file.data)
    if encoding is not None and encoding != UTF_8_WITH_BOM:
        words = f"'{file.path}' is {encoding.upper()} text, and only UTF-8 can be changed in place; write_file can replace it"
        raise ToolFailed("BINARY_NOT_SUPPORTED", words, path=file.path)
    if b"\0" in file.data:
        words = f"'{file.path}' is no text: it has NUL bytes ({len(file.data)} bytes in all)"
        raise ToolFailed("BINARY_NOT_SUPPORTED", words, path=file.path)
    return file.data.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    """What ``text_of`` was made from."""
    return text.encode(errors="surrogateescape")


def refuse_mixture(path: str, before: str, after: str) -> None:
    """Refuse to put UTF-8 into a file of another encoding, which would then be neither; its own bytes stay as they are."""
    foreign = [char for char in set(before) if not char.isascii()]
    if not foreign or not all(map(_is_escaped, foreign)):
        return
    if any(not char.isascii() and not _is_escaped(char) for char in set(after)):
        words = (
            f"'{path}' is text, but not UTF-8, and its encoding is not known: only ASCII can be put into it;"
            " write_file can replace it as a whole"
        )
        raise ToolFailed("BINARY_NOT_SUPPORTED", words, path=path)


def _is_escaped(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def check_expected(path: str, expected: str | None, found: str | None) -> None:
    """Refuse a file whose digest is not the ``expected`` one; ``found`` is None where there is no file."""
    if expected is None or expected.lower() == found:
        return
    if found is None:
        words = f"'{path}' does not exist, but a file with expected_sha256 was to be there; look what became of it"
    else:
        words = f"'{path}' has changed: its sha256 is {found}, not expected_sha256; read it again and redo the change"
    raise ToolFailed("CONFLICT", words, path=path, sha256=found)
