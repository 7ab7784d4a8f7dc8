"""Reads shell text for rules: which commands it would run, as far as plain words show that.

Promise: ``plain_commands`` returns commands only for text that a shell reads in exactly the same way: plain or quoted words,
joined by ``&&``, ``||``, ``;`` and ``|``. For everything else (substitutions, redirections, variables, globs, escapes,
comments, keywords, assignments, line breaks, look-alike spaces) it returns None: no allow rule covers such text, and every
deny and ask rule on commands matches it. Text that is longer than a command may be is not parsed. Time is linear.

Limit: what the commands do with their arguments is not judged. Rules on text are a convenience; the process sandbox is the
boundary.
"""

from __future__ import annotations

import re
from typing import Final

MAX_TEXT: Final = 128 * 1024 - 1  # the process guard refuses a longer argument

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+,=-]+", re.ASCII)
# Characters that are not special to a shell, or a quoted text in which nothing is special. `{}` and `\;` are in every
# `find -exec`.
_PART: Final = re.compile(
    r"""((?:[A-Za-z0-9_./:@%+,=-]|\{\})+)|'([^'\x00-\x1f\x7f]*)'|"([^"$`\\!\x00-\x1f\x7f]*)\"""", re.ASCII
)
# One or more such parts without a space.
_WORD: Final = re.compile(rf"(?:{_PART.pattern})+|\\;", re.ASCII)
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
    if len(text) > MAX_TEXT:
        return None
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
    text_of_word = found[0]
    if first:
        # A plain command does not start with a quoted program, an assignment or a keyword.
        is_program = _PLAIN.fullmatch(text_of_word) and "=" not in text_of_word and text_of_word not in _KEYWORDS
        return (text_of_word, end) if is_program else None
    if text_of_word == r"\;":
        return ";", end
    return "".join("".join(parts) for parts in _PART.findall(text_of_word)), end
