"""The bytes of a program as text for a model: nothing is hidden, and nothing acts on a terminal.

Tabs and line feeds stay. A carriage return, with or without a line feed after it, is the end of a line, so that every
state of a progress bar gets its own line. Every other control character (escape codes, NUL), every invisible format
character (bidi overrides, tags) and every byte that is not UTF-8 is written as an escape such as ``\\x1b`` or ``\\u202e``.
Backslashes stay as they are, so the escaping cannot be reversed.
"""

from __future__ import annotations

import codecs
from typing import Final

from toolkit.visible import escape_hidden

_MAX_REMEMBERED: Final = 4096


class _Escapes(dict[int, str]):
    """For ``str.translate``: each character as it is shown, computed when it first comes."""

    def __missing__(self, code: int) -> str:
        # How Python represents a byte that is not UTF-8.
        shown = f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else escape_hidden(chr(code))
        if len(self) < _MAX_REMEMBERED:
            self[code] = shown
        return shown


_ESCAPES: Final = _Escapes({ord("\t"): "\t", ord("\n"): "\n"})


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
        # Colours are by far the most common escape; the table looks at every character.
        text = text.replace("\x1b", "\\x1b")
        return text if _is_plain(text) else text.translate(_ESCAPES)


def _is_plain(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()
