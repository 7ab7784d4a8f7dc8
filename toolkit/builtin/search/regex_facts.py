"""What can be told of a regular expression from its text: what it costs, and a text every match must hold.

Only for expressions that the engine has accepted: this reads them, it does not judge them. Where it is unsure it
says less: no needle, or a higher weight.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

# Anchors of the whole text, not of a line: ``\\A`` and ``\\z``, and the flags that change what ``^`` and ``$`` mean.
_WHOLE_TEXT: Final = re.compile(r"\\[Az]|\(\?[a-zA-Z]*(?:R|-[a-zA-Z]*m)")
_VERBOSE: Final = re.compile(r"\(\?[a-wyzA-Z]*x")
_COUNTS: Final = re.compile(r"(\d+)\s*\}")
# With the mark of the lazy kind, which changes nothing about what must be there.
_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{\s*(\d+)\s*,?\s*(\d*)\s*\})\??")
_GROUP_OPENER: Final = re.compile(r"\((?:\?(?:P?<[^>]*>|[a-zA-Z-]*:))?")
_FLAGS_ALONE: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_ESCAPE: Final = re.compile(r"\\(?:[pPxuU]\{[^}]*\}|[pP].|x..|u.{4}|U.{8}|b\{(?:start|end)(?:-half)?\}|.)", re.DOTALL)
# Escapes that are not the letter behind the backslash.
_MEANS_ELSE: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ<>")


@dataclass(frozen=True, slots=True)
class Traits:
    """``needle`` stands in every match, if one is known; ``weight`` is how many steps counted repeats add."""

    needle: str | None = None
    is_plain: bool = False
    """Whether the needle is all there is to match."""
    weight: int = 0
    is_line_by_line: bool = False
    """Whether an anchor would mean something else on a text of several lines."""
    has_line_feed: bool = False
    """Whether a line feed is asked for, which no line holds."""


def traits(pattern: str) -> Traits:
    """Reads an expression in the syntax of Rust's ``regex``."""
    is_line_by_line = _WHOLE_TEXT.search(pattern) is not None
    if _VERBOSE.search(pattern):
        # Comments may hold anything, so every number counts as if it repeated all the others.
        weight = math.prod(max(int(found), 1) for found in _COUNTS.findall(pattern))
        return Traits(weight=weight, is_line_by_line=is_line_by_line)
    reader = _Reader(pattern)
    reader.read()
    return Traits(
        max(reader.runs, key=len, default=None),
        reader.is_plain and bool(reader.runs),
        reader.weight,
        is_line_by_line,
        reader.has_line_feed,
    )


@dataclass(slots=True)
class _Level:
    """One open group: how many steps it holds, and how many its last part does."""

    size: int = 0
    last: int = 0


@dataclass(slots=True)
class _Reader:
    """One pass over the text. ``runs`` are texts that stand in every match: letters outside of every group."""

    pattern: str
    runs: list[str] = field(default_factory=list)
    weight: int = 0
    is_plain: bool = False
    has_line_feed: bool = False
    _levels: list[_Level] = field(default_factory=lambda: [_Level()])
    _run: str = ""
    _written: int = 0
    _is_unsure: bool = False
    """Whether there is a choice, or something that is not looked into: no letter need be there then."""

    def read(self) -> None:
        at = 0
        while at < len(self.pattern):
            at = self._step(at)
        self.is_plain = not self.runs and len(self._run) == self._written
        self._end_run()
        self.weight = self._levels[0].size - self._written
        if self._is_unsure:
            self.runs.clear()

    def _step(self, at: int) -> int:
        letter = self.pattern[at]
        if letter == "\\":
            return self._escape(at)
        if letter == "[":
            self._atom()
            return _end_of_class(self.pattern, at)
        if letter == "(":
            return self._open(at)
        if letter == ")":
            self._close()
        elif letter == "|":
            self._end_run()
            self._is_unsure |= len(self._levels) == 1
        elif letter in "*?+{":
            return self._repeat(at)
        elif letter in ".^$":
            self._atom()
        else:
            self._letter(letter)
        return at + 1

    def _letter(self, letter: str) -> None:
        self._atom(letter)
        self.has_line_feed |= letter == "\n"

    def _atom(self, letter: str = "") -> None:
        level = self._levels[-1]
        level.size += 1
        level.last = 1
        self._written += 1
        if not letter:
            self._end_run()
        elif len(self._levels) == 1:
            self._run += letter

    def _escape(self, at: int) -> int:
        found = _ESCAPE.match(self.pattern, at)
        text = found[0] if found else self.pattern[at:]
        if text[1:2] in _MEANS_ELSE:
            self._atom()
            self.has_line_feed |= text == "\\n"
        else:
            self._letter(text[1:])
        return at + len(text)

    def _open(self, at: int) -> int:
        self._end_run()
        flags = _FLAGS_ALONE.match(self.pattern, at)
        if flags:
            self._is_unsure = True
            return flags.end()
        opener = _GROUP_OPENER.match(self.pattern, at)
        self._levels.append(_Level())
        return opener.end() if opener else at + 1

    def _close(self) -> None:
        inner = self._levels.pop()
        self._end_run()
        self._levels[-1].size += inner.size
        self._levels[-1].last = inner.size

    def _repeat(self, at: int) -> int:
        """Behind a repeated letter no run goes on; one that may be missing is in no run at all."""
        found = _QUANTIFIER.match(self.pattern, at)
        if found is None:
            self._is_unsure = True
            return at + 1
        sign, least, most = found.groups()
        if sign in ("*", "?") or least == "0":
            self._run = self._run[:-1]
        self._end_run()
        level = self._levels[-1]
        added = level.last * (max(int(most or least or 1), 1) - 1)
        level.size += added
        level.last += added
        # A repeat of a repeat may make what the first one asked for unnecessary.
        self._is_unsure |= self.pattern[found.end() : found.end() + 1] in ("*", "+", "?", "{")
        return found.end()

    def _end_run(self) -> None:
        if self._run:
            self.runs.append(self._run)
        self._run = ""


def _end_of_class(pattern: str, at: int) -> int:
    """The place behind ``[...]``, which may hold further ones."""
    depth = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "\\":
            at += 1
        elif letter == "[":
            depth += 1
            at += pattern.startswith("^", at)
            at += pattern.startswith("]", at)  # in the first place it is a letter
        elif letter == "]":
            depth -= 1
            if depth == 0:
                break
    return at
