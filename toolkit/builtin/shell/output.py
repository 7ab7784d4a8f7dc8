"""The bytes of a program as text for a model: nothing is hidden, and nothing acts on a terminal.

Tabs and line feeds stay. A carriage return, with or without a line feed after it, is the end of a line, so that every
state of a progress bar gets its own line. Every other control character (escape codes, NUL), every invisible format
character (bidi overrides, tags) and every byte that is not UTF-8 is written as an escape such as ``\\x1b`` or ``\\u202e``.
Backslashes stay as they are, so the escaping cannot be reversed.

A program may write gigabytes, so no step here runs Python code for each character.
"""

from __future__ import annotations

import codecs
from typing import Final

from toolkit.visible import hidden_characters

_ASCII: Final = bytes(range(0x80))
_VISIBLE: Final = bytes(code for code in _ASCII if chr(code).isprintable() or chr(code) in "\t\n")
_CONTROLS: Final = bytes(set(_ASCII) - set(_VISIBLE))
_SEPARATOR: Final = "\r"
"""Never in a text that is escaped here: carriage returns have become line feeds."""

_MAX_REPLACED: Final = 4
"""Number of different hidden bytes or characters up to which replacing one after the other is faster than tables."""

# Not printable for Python, yet visible or needed: no-break and ideographic spaces, joiners.
_ALSO_PLAIN: Final = "\xa0\u202f\u3000\u200c\u200d"


def _shown_byte(code: int) -> bytes:
    return bytes([code]) if code in _VISIBLE or code == ord(_SEPARATOR) else b"\\x%02x" % code


_SHOWN: Final = [_shown_byte(code) for code in range(0x100)]
_COLUMNS: Final = [bytes(shown.ljust(4, b"\0")[column] for shown in _SHOWN) for column in range(4)]
"""For ``bytes.translate``: the first, second, third and fourth byte of what is shown for a byte, NUL for none."""


class OutputEscaper:
    """Escapes one stream, chunk by chunk; a character or line end that is split between chunks waits for its other half.

    >>> escaper = OutputEscaper()
    >>> escaper.feed(b"50%\\r100%\\r"), escaper.feed(b"\\ncaf\\xc3"), escaper.feed(b"\\xa9 \\x1b[0m\\xff"), escaper.end()
    ('50%\\n100%', '\\ncaf', 'é \\\\x1b[0m\\\\xff', '')
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._held = ""
        """A carriage return at the end of a chunk, until the next one shows whether a line feed follows."""

    def feed(self, data: bytes) -> str:
        """The text of this chunk, as far as it is complete."""
        return self._escape(self._decode(data), is_end=False)

    def end(self) -> str:
        """The rest of the text, which was waiting for more."""
        return self._escape(self._decode(b"", True), is_end=True)

    def _escape(self, text: str, *, is_end: bool) -> str:
        if "\r" in text or self._held:
            text = self._held + text
            self._held = "" if is_end or not text.endswith("\r") else "\r"
            text = text.removesuffix(self._held).replace("\r\n", "\n").replace("\r", "\n")
        # Colours are by far the most common escape.
        text = text.replace("\x1b", "\\x1b")
        return text if _is_plain(text) else _escape_hidden(text)


def _is_plain(text: str) -> bool:
    rest = text.replace("\n", "").replace("\t", "")
    if rest.isprintable() or rest.isascii():
        return rest.isprintable()
    for character in _ALSO_PLAIN:
        rest = rest.replace(character, "")
    return rest.isprintable()


def _escape_hidden(text: str) -> str:
    try:
        return _escape_bytes(text.encode("ascii", "surrogateescape"))
    except UnicodeEncodeError:
        return _escape_foreign(text)


def _escape_bytes(data: bytes) -> str:
    """Bytes of which each is a visible ASCII character or shown as an escape."""
    hidden = set(data.translate(None, _VISIBLE + _SEPARATOR.encode()))
    if len(hidden) <= _MAX_REPLACED:
        for code in hidden:
            data = data.replace(bytes([code]), _SHOWN[code])
        return data.decode()
    shown = bytearray(4 * len(data))
    for column, table in enumerate(_COLUMNS):
        shown[column::4] = data.translate(table)
    return shown.translate(None, b"\0").decode()


def _escape_foreign(text: str) -> str:
    """A text with characters outside ASCII. Each different character is looked at once, however often it occurs."""
    characters = set(text)
    hidden = {character: _show_hidden(character) for character in characters & hidden_characters()}
    for kept in "\t\n":
        hidden.pop(kept, None)
    if len(hidden) <= _MAX_REPLACED:
        for character, shown in hidden.items():
            text = text.replace(character, shown)
        return text
    return "".join(map({**dict(zip(characters, characters, strict=True)), **hidden}.__getitem__, text))


def _show_hidden(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python represents a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
