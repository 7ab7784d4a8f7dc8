"""Reads shell text for rules: which commands it would run, as far as plain words show that.

Promise: ``plain_commands`` returns commands only for text that a shell reads in exactly the same way: plain words, joined
by ``&&``, ``||``, ``;`` and ``|``. For everything else (substitutions, redirections, variables, globs, escapes, comments,
keywords, assignments, line breaks, look-alike spaces) it returns None, which no allow rule covers.

Limit: what the commands do with their arguments is not judged. Rules on text are a convenience; the process sandbox is the
boundary.
"""

from __future__ import annotations

import re
from typing import Final

# A word without characters that are special to a shell, or a word that is quoted as a whole.
_WORD: Final = re.compile(
    r"""(?P<plain>[A-Za-z0-9_./:@%+,=-]+)"""
    r"""|'(?P<single>[^'\x00-\x1f\x7f]*)'"""
    r"""|"(?P<double>[^"$`\\!\x00-\x1f\x7f]*)\"""",
    re.ASCII,
)
_OPERATOR: Final = re.compile(r"&&|\|\||;|\|(?!&)")
_KEYWORDS: Final = frozenset(
    {
        "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time",
        "until", "while",
    }
)  # fmt: skip


def plain_commands(text: str) -> list[tuple[str, ...]] | None:
    """The commands of a text, each as a tuple of words; None if the text is not plain.

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
        operator = _OPERATOR.match(text, place)
        if operator is not None:
            if not words:
                return None
            commands.append(tuple(words))
            words = []
            place = operator.end()
            continue
        word = _read_word(text, place, first=not words)
        if word is None:
            return None
        value, place = word
        words.append(value)
    if words:
        commands.append(tuple(words))
    elif not commands or not text.rstrip(" ").endswith(";"):
        return None
    return commands


def _read_word(text: str, place: int, *, first: bool) -> tuple[str, int] | None:
    """The word at a position and its end. It must end at a space or an operator; None if it does not."""
    found = _WORD.match(text, place)
    if found is None:
        return None
    end = found.end()
    if end < len(text) and text[end] != " " and _OPERATOR.match(text, end) is None:
        return None
    value = next(part for part in found.groups() if part is not None)
    # A plain command does not start with a quoted program, an assignment or a keyword.
    if first and (found["plain"] is None or "=" in value or value in _KEYWORDS):
        return None
    return value, end
