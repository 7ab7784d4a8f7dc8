"""Facts about a regular expression that can be read from its text: its cost, and a text every match must contain.

Only for expressions that the engine has accepted: they are not validated here. When in doubt, it claims less: no needle, or
a higher weight.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

# Anchors of the whole text instead of a line: ``\\A``, ``\\z``, and flags that change what ``^`` and ``$`` mean.
_WHOLE_TEXT: Final = re.compile(r"\\[Az]|\(\?[a-zA-Z]*(?:R|-[a-zA-Z]*m)")
_VERBOSE: Final = re.compile(r"\(\?[a-wyzA-Z]*x")
_COUNTS: Final = re.compile(r"(\d+)\s*\}")
# Including the lazy mark, which does not change what must be present.
_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{\s*(\d+)\s*,?\s*(\d*)\s*\})\??")
_GROUP_OPENER: Final = re.compile(r"\((?:\?(?:P?<[^>]*>|[a-zA-Z-]*:))?")
_FLAGS_ALONE: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_ESCAPE: Final = re.compile(r"\\(?:[pPxuU]\{[^}]*\}|[pP].|x..|u.{4}|U.{8}|b\{(?:start|end)(?:-half)?\}|.)", re.DOTALL)
# Escapes that do not stand for the letter after the backslash.
_NOT_LITERAL: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ<>")


@dataclass(frozen=True, slots=True)
class RegexFacts:
    """``needle`` is a text in every match, if one is known; ``weight`` is how many steps counted repeats add."""

    needle: str | None = None
    is_plain: bool = False
    """Whether the needle is the whole pattern."""
    weight: int = 0
    is_line_by_line: bool = False
    """Whether an anchor would change its meaning on a text of several lines."""
    has_line_feed: bool = False
    """Whether it contains a line feed, which no line does."""


def read_facts(pattern: str) -> RegexFacts:
    """The facts about an expression in the syntax of Rust's ``regex``."""
    is_line_by_line = _WHOLE_TEXT.search(pattern) is not None
    if _VERBOSE.search(pattern):
        # Comments may contain anything, so every number counts as if it repeated all others.
        weight = math.prod(max(int(found), 1) for found in _COUNTS.findall(pattern))
        return RegexFacts(weight=weight, is_line_by_line=is_line_by_line)
    reader = _PatternReader(pattern)
    reader.read()
    return RegexFacts(
        max(reader.runs, key=len, default=None),
        reader.is_plain and bool(reader.runs),
        reader.weight,
        is_line_by_line,
        reader.has_line_feed,
    )


@dataclass(slots=True)
class _OpenGroup:
    """One open group: the number of steps in it, and in its last part."""

    size: int = 0
    last: int = 0


@dataclass(slots=True)
class _PatternReader:
    """One pass over the pattern. ``runs`` are texts in every match: letters outside all groups."""

    pattern: str
    runs: list[str] = field(default_factory=list)
    weight: int = 0
    is_plain: bool = False
    has_line_feed: bool = False
    _groups: list[_OpenGroup] = field(default_factory=lambda: [_OpenGroup()])
    _run: str = ""
    _written: int = 0
    _is_unsure: bool = False
    """Whether there is an alternative or something unknown, so that no letter is certain."""

    def read(self) -> None:
        at = 0
        while at < len(self.pattern):
            at = self._read_one(at)
        self.is_plain = not self.runs and len(self._run) == self._written
        self._end_run()
        self.weight = self._groups[0].size - self._written
        if self._is_unsure:
            self.runs.clear()

    def _read_one(self, at: int) -> int:
        letter = self.pattern[at]
        if letter == "\\":
            return self._read_escape(at)
        if letter == "[":
            self._add_atom()
            return _find_class_end(self.pattern, at)
        if letter == "(":
            return self._open_group(at)
        if letter == ")":
            self._close_group()
        elif letter == "|":
            self._end_run()
            self._is_unsure |= len(self._groups) == 1
        elif letter in "*?+{":
            return self._read_repeat(at)
        elif letter in ".^$":
            self._add_atom()
        else:
            self._add_letter(letter)
        return at + 1

    def _add_letter(self, letter: str) -> None:
        self._add_atom(letter)
        self.has_line_feed |= letter == "\n"

    def _add_atom(self, letter: str = "") -> None:
        group = self._groups[-1]
        group.size += 1
        group.last = 1
        self._written += 1
        if not letter:
            self._end_run()
        elif len(self._groups) == 1:
            self._run += letter

    def _read_escape(self, at: int) -> int:
        found = _ESCAPE.match(self.pattern, at)
        text = found[0] if found else self.pattern[at:]
        if text[1:2] in _NOT_LITERAL:
            self._add_atom()
            self.has_line_feed |= text == "\\n"
        else:
            self._add_letter(text[1:])
        return at + len(text)

    def _open_group(self, at: int) -> int:
        self._end_run()
        flags = _FLAGS_ALONE.match(self.pattern, at)
        if flags:
            self._is_unsure = True
            return flags.end()
        opener = _GROUP_OPENER.match(self.pattern, at)
        self._groups.append(_OpenGroup())
        return opener.end() if opener else at + 1

    def _close_group(self) -> None:
        inner = self._groups.pop()
        self._end_run()
        self._groups[-1].size += inner.size
        self._groups[-1].last = inner.size

    def _read_repeat(self, at: int) -> int:
        """A repeated letter ends a run; a letter that may be missing is not part of any run."""
        found = _QUANTIFIER.match(self.pattern, at)
        if found is None:
            self._is_unsure = True
            return at + 1
        sign, least, most = found.groups()
        if sign in ("*", "?") or least == "0":
            self._run = self._run[:-1]
        self._end_run()
        group = self._groups[-1]
        added = group.last * (max(int(most or least or 1), 1) - 1)
        group.size += added
        group.last += added
        # A repeat of a repeat may make the first one optional.
        self._is_unsure |= self.pattern[found.end() : found.end() + 1] in ("*", "+", "?", "{")
        return found.end()

    def _end_run(self) -> None:
        if self._run:
            self.runs.append(self._run)
        self._run = ""


def _find_class_end(pattern: str, at: int) -> int:
    """The position after ``[...]``, which may be nested."""
    depth = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "\\":
            at += 1
        elif letter == "[":
            depth += 1
            at += pattern.startswith("^", at)
            at += pattern.startswith("]", at)  # in first place it is a letter
        elif letter == "]":
            depth -= 1
            if depth == 0:
                break
    return at
