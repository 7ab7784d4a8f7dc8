"""The bytes of a program as text for a model: what is shown is what is there, and nothing acts on a terminal.

One rule. Tabs and line feeds stay; a carriage return, with a line feed behind it or without, is the end of a line, so that
every state of a progress bar has its own. Every other control character (escape codes, NUL), every invisible format
character (bidi overrides, tags) and every byte that is not UTF-8 is written as an escape such as ``\\x1b`` or ``\\u202e``.
Backslashes stay as they are, so this cannot be reversed.
"""

from __future__ import annotations

import codecs
from typing import Final

from toolkit.visible import escape_hidden

_MAX_REMEMBERED: Final = 4096


class _Escapes(dict[int, str]):
    """For ``str.translate``: each character as it is shown, found out when it first comes."""

    def __missing__(self, code: int) -> str:
        # How Python carries a byte that is not UTF-8.
        shown = f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else escape_hidden(chr(code))
        if len(self) < _MAX_REMEMBERED:
            self[code] = shown
        return shown


_ESCAPES: Final = _Escapes({ord("\t"): "\t", ord("\n"): "\n"})


class Cleaner:
    """One stream, chunk by chunk; a character or line end that a chunk splits waits for its other half.

    >>> cleaner = Cleaner()
    >>> cleaner.feed(b"50%\\r100%\\r"), cleaner.feed(b"\\ncaf\\xc3"), cleaner.feed(b"\\xa9 \\x1b[0m\\xff"), cleaner.end()
    ('50%\\n100%', '\\ncaf', 'é \\\\x1b[0m\\\\xff', '')
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._held = ""
        """A carriage return at the end of a chunk: the next one tells whether a line feed follows."""

    def feed(self, data: bytes) -> str:
        """The text that is certain by now."""
        return self._cleaned(self._decode(data), is_end=False)

    def end(self) -> str:
        """What was waiting for more."""
        return self._cleaned(self._decode(b"", True), is_end=True)

    def _cleaned(self, text: str, *, is_end: bool) -> str:
        if "\r" in text or self._held:
            text = self._held + text
            self._held = "" if is_end or not text.endswith("\r") else "\r"
            text = text.removesuffix(self._held).replace("\r\n", "\n").replace("\r", "\n")
        # Colours are by far the most common escape; the table looks at every character.
        text = text.replace("\x1b", "\\x1b")
        return text if _is_plain(text) else text.translate(_ESCAPES)


def _is_plain(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()
