"""Reads shell text for rules: which commands it would run, as far as plain words show that.

Promise: ``plain_commands`` returns commands only for text that a shell reads in exactly the same way: plain or quoted words,
joined by ``&&``, ``||``, ``;`` and ``|``. For everything else (substitutions, redirections, variables, globs, escapes,
comments, keywords, assignments, line breaks, look-alike spaces) it returns None: no allow rule covers such text.

``run_commands`` is for deny and ask, which need to know only what is run. It also reads line breaks, redirections to and from
plain names, and ``*`` and ``?`` in arguments, which stand for unknown words. What it cannot read matches every such rule.
Text that is longer than a command may be is not parsed. Time is linear.

Limit: what the commands do with their arguments is not judged. Rules on text are a convenience; the process sandbox is the
boundary.
"""

from __future__ import annotations

import re
from typing import Final

MAX_TEXT: Final = 128 * 1024 - 1  # the process guard refuses a longer argument
UNKNOWN_WORDS: Final = "\0"
"""Stands for any words. No command that can be run contains it."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+,=-]+", re.ASCII)
# Characters that are not special to a shell, or a quoted text in which nothing is special. `{}` and `\;` are in every
# `find -exec`.
_PART: Final = re.compile(
    r"""((?:[A-Za-z0-9_./:@%+,=-]|\{\})+)|'([^'\x00-\x1f\x7f]*)'|"([^"$`\\!\x00-\x1f\x7f]*)\"""", re.ASCII
)
# One or more such parts without a space.
_WORD: Final = re.compile(rf"(?:{_PART.pattern})+|\\;", re.ASCII)
_OPERATOR: Final = re.compile(r"&&|\|\||;|\|(?!&)")
# The same with globs, for what only deny and ask rules read.
_GLOB_PART: Final = re.compile(_PART.pattern.replace(r"|\{\}", r"|\{\}|[*?]", 1), re.ASCII)
_GLOB_WORD: Final = re.compile(rf"(?:{_GLOB_PART.pattern})+|\\;", re.ASCII)
_GLOB: Final = re.compile(r"[*?]")
_SEPARATOR: Final = re.compile(rf"{_OPERATOR.pattern}|\n")
# Not `&>`: some shells read it as `&` and `>`.
_REDIRECTION: Final = re.compile(
    rf"[0-9]?(?:>>|>|<)(?:&[0-9]| *(?>(?:{_PART.pattern})+))(?= |$|\n|{_OPERATOR.pattern})", re.ASCII
)
# zsh puts the path of a program for `=program`.
_ZSH_PROGRAM: Final = re.compile(r"=[^=]")
SHELL_KEYWORDS: Final = frozenset(
    {
        "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "foreach", "function", "if", "in", "repeat",
        "select", "then", "time", "until", "while",
    }
)  # fmt: skip


def plain_commands(text: str) -> list[tuple[str, ...]] | None:
    """The commands of a text, each as a tuple of words; None if the text is not plain.

    >>> plain_commands("git log -1 && ls src | wc -l")
    [('git', 'log', '-1'), ('ls', 'src'), ('wc', '-l')]
    >>> plain_commands("git log $(id)") is None
    True
    """
    return _read(text, loosely=False)


def run_commands(text: str) -> list[tuple[str, ...]] | None:
    """The commands that a text would run, for deny and ask; None if they cannot be read.

    >>> run_commands("pytest -q 2>&1 | tail -5")
    [('pytest', '-q'), ('tail', '-5')]
    """
    return _read(text, loosely=True)


def _read(text: str, *, loosely: bool) -> list[tuple[str, ...]] | None:
    if len(text) > MAX_TEXT:
        return None
    separators = _SEPARATOR if loosely else _OPERATOR
    commands: list[tuple[str, ...]] = []
    words: list[str] = []
    place = 0
    ended_by = ""
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        separator = separators.match(text, place)
        if separator is not None:
            place = separator.end()
            if words:
                commands.append(tuple(words))
                words, ended_by = [], separator[0]
            elif separator[0] != "\n":
                return None
            continue
        redirection = _REDIRECTION.match(text, place) if loosely else None
        if redirection is not None:
            place = redirection.end()
            continue
        word = _read_word(text, place, first=not words, loosely=loosely)
        if word is None:
            return None
        value, place = word
        words.append(value)
    if words:
        commands.append(tuple(words))
    elif not commands or ended_by not in (";", "\n"):
        return None
    return commands


def _read_word(text: str, place: int, *, first: bool, loosely: bool) -> tuple[str, int] | None:
    """The word at a position and its end. It must end at a space or a separator; None if it does not."""
    found = (_GLOB_WORD if loosely else _WORD).match(text, place)
    if found is None:
        return None
    end = found.end()
    separators = _SEPARATOR if loosely else _OPERATOR
    if end < len(text) and text[end] != " " and separators.match(text, end) is None:
        return None
    text_of_word = found[0]
    if first:
        # A plain command does not start with a quoted program, an assignment or a keyword.
        is_program = _PLAIN.fullmatch(text_of_word) and "=" not in text_of_word and text_of_word not in SHELL_KEYWORDS
        return (text_of_word, end) if is_program else None
    if text_of_word == r"\;":
        return ";", end
    if loosely and _ZSH_PROGRAM.match(text_of_word):
        return None
    if not loosely:
        return "".join("".join(parts) for parts in _PART.findall(text_of_word)), end
    found_parts = _GLOB_PART.findall(text_of_word)
    return "".join(_GLOB.sub(UNKNOWN_WORDS, bare) + single + double for bare, single, double in found_parts), end
