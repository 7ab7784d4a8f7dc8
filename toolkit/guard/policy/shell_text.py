"""Reads shell text: which commands it runs, as plain data.

Promise: ``read_shell`` returns commands only for text that bash, dash and zsh read in exactly this way: words, quoted or
not, joined by ``&&``, ``||``, ``|``, ``;`` and line breaks, with assignments, redirections and comments. What a shell
computes is a ``ShellGlob``, or None for variables, ``$(…)``, backticks and ``~``; the commands inside ``$(…)`` and
backticks are returned as well. For everything else (compound commands, functions, ``&``, here-documents, ``$'…'``,
``${x…}``, arithmetic, ``{a,b}``, control characters, other alphabets outside quotes) it returns None. ``&>`` is read as
bash and zsh do; dash takes it for ``&`` and ``>``. Time is linear.

Limit: what a program does with its arguments is not judged, and neither is what a variable or a file holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_TEXT: Final = 128 * 1024 - 1  # the process guard refuses a longer argument
_MAX_DEPTH: Final = 8

_NEVER: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_VARIABLE: Final = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?$#!*@-]|\{[A-Za-z_][A-Za-z0-9_]*\})"
_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t]+(?:\\\n[ \t]*)*)"
    r"|(?P<join>\n|&&|\|\||\|(?![&|])|;(?![;&|]))"
    r"|(?P<redirect>&>>?|[0-9]?(?:>>|>\||>&|<&|>(?!\()|<(?![<>(])))"
    r"|(?P<bare>[A-Za-z0-9_./:@%+,=^!~{}\[\]*?#-]+)"
    r"|\\(?P<escaped>[ -~])"
    r"|'(?P<single>[^']*)'"
    rf"|(?P<variable>{_VARIABLE})"
    r"|(?P<open>\$\((?!\()|[`\"])"
    r"|(?P<close>\))",
    re.ASCII,
)
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_./:@%+,-]+(?=[ \t\n;|)]|&&|\Z)", re.ASCII)  # as most are
_IN_DOUBLE: Final = re.compile(
    rf"(?P<text>[^\"$`\\]+|\\[^$`\"\\\n]|\$(?=[\" |)/.,]))|\\(?P<escaped>[$`\"\\])|(?P<variable>{_VARIABLE})"
    r"|(?P<open>\$\((?!\()|`)"
)
_IN_BACKTICKS: Final = re.compile(r"`([^`\\]*)`")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_PROGRAM: Final = re.compile(r"\[|[A-Za-z0-9_./:@+,-]+", re.ASCII)  # `%1` is a job
_TILDE: Final = re.compile(r"(?<![A-Za-z0-9_^}.])~", re.ASCII)
_LITERAL_BRACES: Final = re.compile(r"\{[A-Za-z0-9_-]*\}", re.ASCII)
_GLOB: Final = re.compile(r"[*?]|\[(?!$)|(?<!^)\[")
_ODD_START: Final = re.compile(r"=[^=]")  # zsh puts the path of a program for `=program`
_MARK: Final = "\0"  # in no text: stands for what is quoted where only the rest is looked at, and for a star in a glob
KEYWORDS: Final = frozenset(
    {
        "case", "coproc", "do", "done", "elif", "else", "end", "esac", "fi", "for", "foreach", "function", "if", "in",
        "repeat", "select", "then", "time", "until", "while",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShellGlob:
    """An unquoted word with ``*``, ``?`` or ``[``: in a command it stands for the names of files, in a rule for any word
    that fits it."""

    source: str
    parts: tuple[str, ...]
    """The text between its stars."""

    def fits(self, word: str) -> bool:
        """Whether the word is these parts with any text for each star; ``?`` and ``[`` are themselves.

        >>> ShellGlob("a*c", ("a", "c")).fits("abc"), ShellGlob("a*c", ("a", "c")).fits("ab")
        (True, False)
        """
        if len(self.parts) == 1:
            return word == self.parts[0]
        first, *middle, last = self.parts
        if len(word) < len(first) + len(last) or not (word.startswith(first) and word.endswith(last)):
            return False
        place = len(first)
        for part in middle:
            found = word.find(part, place, len(word) - len(last))
            if found < 0:
                return False
            place = found + len(part)
        return True


Word: TypeAlias = "str | ShellGlob | None"


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command."""

    words: tuple[Word, ...]
    """The program and its arguments; empty if there are only assignments or redirections."""
    assigned: tuple[Word, ...] = ()
    """``NAME=value`` before the program."""
    redirects: tuple[tuple[str, Word], ...] = ()
    """What leads to or from a file other than ``/dev/null``: ``(">", "build.log")``."""


def read_shell(text: str) -> tuple[ShellCommand, ...] | None:
    """The commands that a text runs, in the order in which they end; None if the text cannot be read.

    >>> [command.words for command in read_shell("pytest -q 2>&1 | tail -5")]
    [('pytest', '-q'), ('tail', '-5')]
    >>> [command.words for command in read_shell("git diff $(git merge-base main HEAD)")]
    [('git', 'merge-base', 'main', 'HEAD'), ('git', 'diff', None)]
    >>> read_shell("ls &") is None
    True
    """
    if len(text) > MAX_TEXT or _NEVER.search(text):
        return None
    reader = _Reader(text)
    try:
        reader.read_commands(0)
    except UnreadableText:
        return None
    return tuple(reader.found)


def join_texts(texts: Sequence[str]) -> str:
    """One text for several that are run by themselves. It is read as all of them, and cannot be read if one of them cannot:
    a quote must not reach from one into the next.

    >>> join_texts(["ls # all", "pwd"])
    'ls # all\\npwd'
    >>> read_shell(join_texts(["ls '", "rm x #'"])) is None
    True
    """
    return ("\f" if None in map(read_shell, texts) else "\n").join(texts)


class UnreadableText(Exception):
    """Something is not certain to be read alike by every shell."""


class _Building:
    """A command of which only a part has been read."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.assigned: list[Word] = []
        self.redirects: list[tuple[str, Word]] = []
        self.is_empty = True

    def add_word(self, word: Word, bare: str) -> None:
        """``bare`` is the word as it is written, without what is quoted."""
        self.is_empty = False
        if self.words:
            self.words.append(word)
        elif _ASSIGNMENT.match(bare):
            self.assigned.append(word)
        elif word is None or (_PROGRAM.fullmatch(bare) and bare not in KEYWORDS):
            self.words.append(word)
        else:
            raise UnreadableText

    def add_redirect(self, operator: str, target: Word) -> None:
        self.is_empty = False
        if not operator.endswith("&"):
            if target != "/dev/null":
                self.redirects.append((operator, target))
        elif not isinstance(target, str) or not re.fullmatch(r"[0-9-]", target, re.ASCII):
            raise UnreadableText


class _Reader:
    """Goes through a text once, from left to right."""

    def __init__(self, text: str) -> None:
        self.found: list[ShellCommand] = []
        self._text = text
        self._place = 0

    def read_commands(self, depth: int) -> None:
        """The commands up to the end of the text, or up to the ``)`` that ends a substitution."""
        if depth > _MAX_DEPTH:
            raise UnreadableText
        command, join, count = _Building(), "", len(self.found)
        while self._place < len(self._text):
            token = self._next()
            kind = token.lastgroup
            if kind == "close":
                if depth == 0:
                    raise UnreadableText
                break
            if kind == "blank":
                self._place = token.end()
            elif kind == "join":
                self._place = token.end()
                if not command.is_empty:
                    self._finish(command)
                    command, join = _Building(), token[0]
                elif token[0] != "\n":
                    raise UnreadableText
            elif kind == "redirect":
                self._read_redirect(command, token, depth)
            elif self._text[self._place] == "#":
                end = self._text.find("\n", self._place)
                self._place = len(self._text) if end < 0 else end
            else:
                command.add_word(*self._read_word(depth))
        if not command.is_empty:
            self._finish(command)
        elif join not in (";", "\n") or count == len(self.found):
            raise UnreadableText

    def _next(self) -> re.Match[str]:
        token = _TOKEN.match(self._text, self._place)
        if token is None:
            raise UnreadableText
        return token

    def _finish(self, command: _Building) -> None:
        self.found.append(ShellCommand(tuple(command.words), tuple(command.assigned), tuple(command.redirects)))

    def _read_redirect(self, command: _Building, operator: re.Match[str], depth: int) -> None:
        self._place = operator.end()
        blank = _TOKEN.match(self._text, self._place)
        if blank is not None and blank.lastgroup == "blank":
            self._place = blank.end()
        target, bare = self._read_word(depth)
        if _ASSIGNMENT.match(bare):  # a mistake to bash
            raise UnreadableText
        command.add_redirect(operator[0], target)

    def _read_word(self, depth: int) -> tuple[Word, str]:
        """The word at this place, and its unquoted text."""
        plain = _PLAIN_WORD.match(self._text, self._place)
        if plain is not None:
            self._place = plain.end()
            return plain[0], plain[0]
        start, bare, is_computed = self._place, "", False
        value: list[str] = []
        while self._place < len(self._text):
            token = self._next()
            kind = token.lastgroup
            if kind not in ("bare", "escaped", "single", "variable", "open"):
                break
            bare += token[0] if kind == "bare" else _MARK
            if kind == "open":
                is_computed |= (
                    self._read_double(value, depth) if token[0] == '"' else self._read_substitution(token[0], depth)
                )
                continue
            is_computed |= kind == "variable"
            value.append(token[0].replace("*", _MARK) if kind == "bare" else token["escaped"] or token["single"] or "")
            self._place = token.end()
        following = self._text[self._place : self._place + 1]
        unbraced = _LITERAL_BRACES.sub("", bare)
        if bare[:1] in ("", "#") or "{" in unbraced or "}" in unbraced or _ODD_START.match(bare):
            raise UnreadableText
        # `10>x` and `{name}>x` choose a descriptor in some shells; in `''2>x`, the 2 is a part of the word.
        if following and (following in "<>" and (bare.isdecimal() or bare[-1] == "}") or following in "0123456789"):
            raise UnreadableText
        if is_computed or _TILDE.search(bare):
            return None, bare
        if _GLOB.search(bare):
            return ShellGlob(self._text[start : self._place], tuple("".join(value).split(_MARK))), bare
        return "".join(value), bare

    def _read_double(self, value: list[str], depth: int) -> bool:
        """Text in double quotes; whether a part of it is computed."""
        self._place += 1
        is_computed = False
        while self._text[self._place : self._place + 1] != '"':
            piece = _IN_DOUBLE.match(self._text, self._place)
            if piece is None:
                raise UnreadableText
            if piece.lastgroup == "open":
                is_computed = self._read_substitution(piece[0], depth, quoted=True)
                continue
            is_computed |= piece.lastgroup == "variable"
            value.append(piece["text"] or piece["escaped"] or "")
            self._place = piece.end()
        self._place += 1
        return is_computed

    def _read_substitution(self, opening: str, depth: int, *, quoted: bool = False) -> bool:
        """The commands in ``$(…)`` or backticks; True, as what they print is not known."""
        if opening == "`":
            inside = _IN_BACKTICKS.match(self._text, self._place)
            if inside is None or (quoted and '"' in inside[1]):
                raise UnreadableText
            reader = _Reader(inside[1])
            reader.read_commands(depth + 1)
            if reader._place != len(inside[1]):  # a ")" that nothing has opened
                raise UnreadableText
            self.found += reader.found
            self._place = inside.end()
            return True
        self._place += len(opening)
        self.read_commands(depth + 1)
        if self._text[self._place : self._place + 1] != ")":
            raise UnreadableText
        self._place += 1
        return True
