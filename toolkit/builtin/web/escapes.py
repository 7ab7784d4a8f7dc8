"""Escapes text for Markdown, only where it would be read as a mark, because models read the source."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

# Each alternative starts with a literal, so that the engine skips at once to the next of these characters.
_SPECIAL: Final = re.compile(
    r"""
    \\(?![A-Za-z0-9\s])                 # a backslash that would escape what follows
    | `
    | \*(?:(?!\s)|(?<!\s\*))            # stars that could start or end emphasis
    | _(?<![A-Za-z0-9_]_)_*+(?!\s) | _(?<![\s_]_)_*+(?![A-Za-z0-9])
    | ~(?=~)
    | <(?=[A-Za-z/!?])
    | &(?=\#?[A-Za-z0-9]{1,31};)
    | \((?<=\]\()                       # the start of a link target
    """,
    re.VERBOSE,
)
_BRACKETS: Final = re.compile(r"[\[\]]")
# Line starts that would make a heading, a quotation, a list or a rule.
_LINE_START: Final = re.compile(
    r"(?:#{1,6}(?=\s|$)|>|[-+](?=\s|$)|(?:-\s*+){3,}+$|=++\s*+$)|([0-9]{1,9})([.)])(?=\s|$)"
)
_TICKS: Final = re.compile("`+")


class TextEscaper:
    """Escapes text; calls ``step`` for each mark.

    >>> TextEscaper(lambda: None).escape("*a* [b]", is_link=True)
    '\\\\*a\\\\* \\\\[b\\\\]'
    """

    __slots__ = ("_step",)

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step

    def escape(self, text: str, *, is_link: bool) -> str:
        """Text that means itself, also inside the text of a link if ``is_link``."""
        text = _SPECIAL.sub(self._escape_mark, text)
        return _BRACKETS.sub(self._escape_mark, text) if is_link else text

    def _escape_mark(self, special: re.Match[str]) -> str:
        self._step()
        return "\\" + "\\".join(special[0])


def escape_line_start(line: str) -> str:
    """A line that does not start with a mark.

    >>> escape_line_start("1. one")
    '1\\\\. one'
    """
    start = _LINE_START.match(line)
    if start is None:
        return line
    at = start.start(2) if start[1] else 0
    return f"{line[:at]}\\{line[at:]}"


def quote_code(text: str) -> str:
    """The text as code, between enough backticks."""
    longest = _longest_ticks(text)
    ticks = "`" * (longest + 1)
    space = " " if longest and (text.startswith("`") or text.endswith("`")) else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def fence_for(code: str) -> str:
    """A line of backticks that does not occur in the code."""
    return "`" * max(3, _longest_ticks(code) + 1)


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0) if "`" in text else 0


def in_parentheses(address: str) -> str:
    """A URL as it is written behind the text of a link."""
    return address.replace("(", "%28").replace(")", "%29")
