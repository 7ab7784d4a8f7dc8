"""Draws a program as an editor shows it, with what mypy says about it: docs/images/editor.svg.

``tests/docs/test_picture.py`` runs mypy and compares the picture; ``--update-snapshots`` draws it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from keyword import kwlist
from typing import Final

WIDTH: Final = 860
ROW: Final = 24
LETTER: Final = 8.4
LEFT: Final = 56
TOP: Final = 56
PIECE: Final = re.compile(
    rf"""(?P<string>"[^"]*")|(?P<keyword>\b(?:{"|".join(kwlist)})\b)|(?P<function>(?<=def )\w+)|(?P<other>.)"""
)
COLOURS: Final = {"string": "#98c379", "keyword": "#c678dd", "function": "#61afef"}
PLAIN: Final = "#d7dae0"


@dataclass(frozen=True, slots=True)
class Mistake:
    """What mypy reports, with the first and the last column of the place."""

    line: int
    first: int
    last: int
    message: str


def read_mistakes(printed: str) -> list[Mistake]:
    """The errors that ``mypy --show-error-end`` printed."""
    found = re.finditer(r"^[^:]+:(\d+):(\d+):\d+:(\d+): error: (.*?)  \[[\w-]+\]$", printed, re.MULTILINE)
    return [Mistake(int(one[1]), int(one[2]), int(one[3]), one[4]) for one in found]


def draw(title: str, program: str, mistakes: Sequence[Mistake]) -> str:
    rows: list[str] = []
    y = TOP
    for number, line in enumerate(program.splitlines(), 1):
        rows.append(f'<text x="{LEFT - 20}" y="{y}" text-anchor="end" fill="#5c6370">{number}</text>')
        rows += _draw_code(_split(line), y)
        for mistake in (one for one in mistakes if one.line == number):
            rows.append(_draw_squiggle(mistake, y + 5))
            y += ROW
            rows.append(
                f'<rect x="{LEFT - 8}" y="{y - 16}" width="{WIDTH - LEFT - 16}" height="22" rx="3" fill="#4b2a32"/>'
            )
            rows.append(_text(f"error: {mistake.message}", LEFT, y, "#ff8f9c"))
        y += ROW
    return _frame(title, "\n".join(rows), y)


def _frame(title: str, rows: str, height: int) -> str:
    dots = "".join(
        f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="{c}"/>'
        for n, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#282c34"/>\n'
        f'<path d="M0 8a8 8 0 0 1 8-8h{WIDTH - 16}a8 8 0 0 1 8 8v26H0z" fill="#21252b"/>\n{dots}\n'
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" fill="#9da5b4" font-size="13">{escape(title)}</text>\n'
        f"{rows}\n</svg>\n"
    )


def _split(line: str) -> Iterator[tuple[str, str]]:
    """A line as pieces of one colour; enough for short programs without comments."""
    for colour, found in groupby(PIECE.finditer(line), lambda one: COLOURS.get(one.lastgroup or "", PLAIN)):
        yield "".join(one[0] for one in found), colour


def _draw_code(pieces: Iterator[tuple[str, str]], y: int) -> Iterator[str]:
    column = 0
    for text, colour in pieces:
        if text.strip():
            start = column + len(text) - len(text.lstrip())
            yield _text(text.strip(), LEFT + start * LETTER, y, colour)
        column += len(text)


def _text(text: str, x: float, y: int, colour: str) -> str:
    """With its length, so that any monospaced font fits the squiggles."""
    length = f'textLength="{len(text) * LETTER:g}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:g}" y="{y}" fill="{colour}" xml:space="preserve" {length}>{escape(text)}</text>'


def _draw_squiggle(mistake: Mistake, y: int) -> str:
    start, end = LEFT + (mistake.first - 1) * LETTER, LEFT + mistake.last * LETTER
    waves = "".join("q2 -4 4 0t4 0" for _ in range(max(1, round((end - start) / 8))))
    return f'<path d="M{start:g} {y}{waves}" fill="none" stroke="#ff5c70" stroke-width="1.6"/>'
