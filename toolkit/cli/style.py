"""Colours: where they are shown, and which. Only the eight basic ones, which every theme of a terminal makes readable."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final, Literal, TextIO, TypeAlias

Style: TypeAlias = Literal["bold", "dim", "red", "green", "cyan", "magenta"]

_CODES: Final[dict[Style, str]] = {
    "bold": "1", "dim": "2", "red": "1;31", "green": "32", "cyan": "36", "magenta": "35",
}  # fmt: skip
DECISION_STYLES: Final[dict[str, Style]] = {"allow": "green", "ask": "magenta", "deny": "red"}


@dataclass(frozen=True, slots=True)
class Styled:
    """A piece of a line, and how it looks where colours are shown."""

    text: str
    style: Style | None = None


def takes_colour(stream: TextIO | None) -> bool:
    """A terminal does, unless NO_COLOR is set (https://no-color.org) or it is dumb. With FORCE_COLOR every stream does."""
    if os.environ.get("NO_COLOR") or stream is None:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Style | None) -> str:
    """The text with the codes that a terminal reads.

    >>> paint("no", "red")
    '\\x1b[1;31mno\\x1b[0m'
    """
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and style else text


_HEADING: Final = re.compile(r"^(\w[\w ]*:)(?= |$)")
_ENTRY: Final = re.compile(r"^(  )(-[^\s,]*(?:, -\S+)*(?: / --\S+)?|[a-z][\w-]*)(?=  |$| [A-Z\[<])")
_EXAMPLE: Final = re.compile(r"^(  +)(toolkit .*)$")


def paint_help(text: str) -> str:
    """The page of ``--help`` with colours: headings, and the names of options and commands.

    >>> paint_help("Options:\\n  --json  Print JSON.")
    '\\x1b[1mOptions:\\x1b[0m\\n  \\x1b[36m--json\\x1b[0m  Print JSON.'
    """
    return "\n".join(map(_paint_help_line, text.split("\n")))


def _paint_help_line(line: str) -> str:
    if found := _EXAMPLE.match(line):
        return f"{found[1]}{paint(found[2], 'cyan')}"
    if found := _HEADING.match(line):
        return f"{paint(found[1], 'bold')}{line[found.end() :]}"
    if found := _ENTRY.match(line):
        return f"{found[1]}{paint(found[2], 'cyan')}{line[found.end() :]}"
    return line
