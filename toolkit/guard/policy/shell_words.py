"""Shell text for rules: which commands a text would run, as far as that can be told from plain words.

Promise: ``plain_commands`` answers only for texts a shell reads exactly as we do: plain words, joined by ``&&``, ``||``,
``;`` and ``|``. Everything else (substitutions, redirections, variables, globs, escapes, comments, keywords, assignments,
line breaks, look-alike spaces) is None, which no allow rule covers.

Limit: what the commands themselves do with their words is not judged; rules on text are a convenience, the process
sandbox is the boundary.
"""

from __future__ import annotations

import re
from typing import Final

# A word without any character that means something to a shell; or one that is quoted from end to end.
_WORD: Final = re.compile(
    r"""(?P<plain>[A-Za-z0-9_./:@%+,=-]+)"""
    r"""|'(?P<single>[^'\x00-\x1f\x7f]*)'"""
    r"""|"(?P<double>[^"$`\\!\x00-\x1f\x7f]*)\"""",
    re.ASCII,
)
_JOINT: Final = re.compile(r"&&|\|\||;|\|(?!&)")
_KEYWORDS: Final = frozenset(
    {
        "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time",
        "until", "while",
    }
)  # fmt: skip


def plain_commands(text: str) -> list[tuple[str, ...]] | None:
    """The commands of a text, each as its words; None if the text is not plain.

    >>> plain_commands("git log -1 && ls src | wc -l")
    [('git', 'log', '-1'), ('ls', 'src'), ('wc', '-l')]
    >>> plain_commands("git log $(id)") is None
    True
    """
    commands: list[tuple[str, ...]] = []
    words: list[str] = []
    place = 0
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        joint = _JOINT.match(text, place)
        if joint is not None:
            if not words:
                return None
            commands.append(tuple(words))
            words = []
            place = joint.end()
            continue
        word = _word(text, place, first=not words)
        if word is None:
            return None
        value, place = word
        words.append(value)
    if words:
        commands.append(tuple(words))
    elif not commands or not text.rstrip(" ").endswith(";"):
        return None
    return commands


def _word(text: str, place: int, *, first: bool) -> tuple[str, int] | None:
    """The word at a place and where it ends; it must end at a space or a joint, not run into another piece."""
    found = _WORD.match(text, place)
    if found is None:
        return None
    end = found.end()
    if end < len(text) and text[end] != " " and _JOINT.match(text, end) is None:
        return None
    value = next(part for part in found.groups() if part is not None)
    # A quoted program, an assignment before it, or a keyword: no plain command starts like that.
    if first and (found["plain"] is None or "=" in value or value in _KEYWORDS):
        return None
    return value, end
