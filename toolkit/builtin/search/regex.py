"""Finds matching lines in time linear in the text, whatever the pattern.

Patterns are matched by Rust's ``regex``, which is part of pydantic-core and never backtracks; it answers only yes or no. So
a whole block of lines is tested first, then its halves, down to single lines, or to the lines around a text that every match
contains. A pattern never matches across a line feed.

>>> matcher = compile("err(or)?: .*full", ignore_case=True)
>>> matcher.matches("Error: disk FULL")
True
>>> block = b"ok\\nerror: full\\nerr: pipe\\n"
>>> [block[start:end] for start, end in matcher.spans(block)]
[b'error: full']
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolkit.errors import ToolFailed

# ----------------------------------------------------------------------------------------------------------------------
# Facts about a regular expression that can be read from its text: its cost, and a text every match must contain.
#
# Only for expressions that the engine has accepted: they are not validated here. When in doubt, it claims less: no needle, or
# a higher weight.

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


MAX_PATTERN_CHARACTERS: Final = 4096
# Steps that counted repeats may add. At worst the engine takes all of them for every character; with this many it still
# searches some sixty kilobytes per second.
MAX_WEIGHT: Final = 1000

# Total cost of finding columns, in characters times steps: about a second at worst.
_COLUMN_BUDGET: Final = 50_000_000
_MAX_COLUMN: Final = 4096
# A shorter needle occurs in too many lines to be worth searching for.
_GOOD_NEEDLE: Final = 3

# Stands for a byte that is not UTF-8.
_WRONG_BYTE: Final = "\ufffd"
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$#&-~")

Span: TypeAlias = tuple[int, int]
_Test: TypeAlias = Callable[[bytes | str], bool]


def compile(pattern: str, *, regex: bool = True, ignore_case: bool = False) -> Matcher:
    """The matcher for a regular expression or a literal text.

    Raises ``INVALID_REGEX`` for what the engine does not support and for what would cost too much.
    """
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise _pattern_error(f"it has {len(pattern)} characters, but at most {MAX_PATTERN_CHARACTERS} are allowed")
    if regex:
        _tester(pattern)  # without the prefix added below, so that errors point at the right place
        facts = read_facts(pattern)
    else:
        facts = RegexFacts(pattern, is_plain=True, has_line_feed="\n" in pattern)
        pattern = escape(pattern)
    if facts.has_line_feed:
        raise _pattern_error(
            "it contains a line feed, but lines are searched one by one; search for a part within one line"
        )
    if facts.weight > MAX_WEIGHT:
        raise _pattern_error(
            f"its counted repeats, as in a{{1000}}, multiply to more than {MAX_WEIGHT} steps; use smaller counts"
        )
    if ignore_case:
        return Matcher(f"(?i){pattern}", replace(facts, needle=None, is_plain=False))
    return Matcher(pattern, facts)


def compile_trusted(pattern: str) -> Matcher:
    """The matcher for a regular expression from our own code, without limits."""
    return Matcher(pattern, read_facts(pattern))


def escape(text: str) -> str:
    """The expression that matches exactly this text."""
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


class Matcher:
    """A compiled pattern for any number of texts. Created by ``compile``."""

    def __init__(self, pattern: str, facts: RegexFacts) -> None:
        self._pattern = pattern
        self._text = facts.needle or ""
        self._needle = self._text.encode()
        self._raw_needle = b"" if _WRONG_BYTE in self._text else self._needle
        self._is_plain = facts.is_plain
        self._is_line_by_line = facts.is_line_by_line
        self._step_cost = 1 + facts.weight
        self._column_budget = _COLUMN_BUDGET
        self._test = _tester(f"(?m){pattern}")
        # Several times as fast as `in`.
        self._has_needle = _tester(escape(self._text))

    def matches(self, line: str) -> bool:
        """Whether the line matches."""
        return self._text in line if self._is_plain else self._test(line)

    def may_match(self, data: bytes) -> bool:
        """Whether the data may contain matching lines; it need not be prepared for ``spans``."""
        if not self._raw_needle:
            return True
        return self._has_needle(data) if data.isascii() else self._raw_needle in data

    def spans(self, block: bytes) -> list[Span]:
        """Start and end of each matching line in a block, without the line feed.

        ``block`` is whole lines of valid UTF-8, each ending in a line feed except perhaps the last; see
        ``lines.split_blocks``.
        """
        if not block or (self._needle and not self._has_needle(block)):
            return []
        if self._is_plain:
            return self._lines_around_needle(block, None)
        if not self._is_line_by_line and not self._test(block):
            return []
        if len(self._needle) >= _GOOD_NEEDLE:
            return self._lines_around_needle(block, self._test)
        return self._every_line(block) if self._is_line_by_line else self._bisect(block)

    def column(self, line: str) -> int | None:
        """The character, counted from 1, where the first match starts in a matching line.

        The engine does not report it, so every position is tested. None if that would be too much work, in this line or
        in all lines so far.
        """
        if self._is_plain:
            return line.find(self._text) + 1
        at_start, at_second = self._matches_at_start, self._matches_at_second
        if at_start is None or at_second is None or len(line) > _MAX_COLUMN or not self._can_spend(len(line)):
            return None
        if at_start(line):
            return 1
        # Word boundaries depend on the character before, so one character is kept.
        for at in range(len(line)):
            if not self._can_spend(len(line) - at):
                return None
            if at_second(line[at:]):
                return at + 2
        return None

    def find_near(self, line: str) -> int:
        """A position shortly after the first match in a matching line; 0 if it would be too much work to find."""
        if not self._can_spend(len(line) * len(line).bit_length()):
            return 0
        low, high = 0, len(line)
        while low < high:
            middle = (low + high) // 2
            if self.matches(line[:middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def _can_spend(self, characters: int) -> bool:
        self._column_budget -= characters * self._step_cost
        return self._column_budget >= 0

    @cached_property
    def _matches_at_start(self) -> _Test | None:
        return _tester_or_none(rf"\A(?:{self._pattern})")

    @cached_property
    def _matches_at_second(self) -> _Test | None:
        return _tester_or_none(rf"\A(?s:.)(?:{self._pattern})")

    def _lines_around_needle(self, block: bytes, test: _Test | None) -> list[Span]:
        found: list[Span] = []
        needle = self._needle
        at = block.find(needle)
        while 0 <= at < len(block):
            start = block.rfind(b"\n", 0, at) + 1
            end = block.find(b"\n", at)
            if end < 0:
                end = len(block)
            if test is None or test(block[start:end]):
                found.append((start, end))
            at = block.find(needle, end + 1)
        return found

    def _every_line(self, block: bytes) -> list[Span]:
        found: list[Span] = []
        start = 0
        for line in block.removesuffix(b"\n").split(b"\n"):
            end = start + len(line)
            if self._test(line):
                found.append((start, end))
            start = end + 1
        return found

    def _bisect(self, block: bytes) -> list[Span]:
        """The matching lines of a block that matches as a whole; a match in a line also matches in any part around it."""
        found: list[Span] = []
        pending = [(0, len(block) - block.endswith(b"\n"))]
        while pending:
            start, end = pending.pop()
            if not self._test(block[start:end]):
                continue
            middle = (start + end) // 2
            cut = block.find(b"\n", middle, end)
            if cut < 0:
                cut = block.rfind(b"\n", start, middle)
            if cut < 0:
                found.append((start, end))
            else:
                pending += (cut + 1, end), (start, cut)
        return found


def _tester(pattern: str) -> _Test:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except SchemaError as error:
        raise _pattern_error(f"{_explain(str(error))}. Set regex to false to search for it literally") from None


def _tester_or_none(pattern: str) -> _Test | None:
    """None for an expression that cannot be put into brackets because it ends in a comment."""
    try:
        return _tester(pattern)
    except ToolFailed:
        return None


_HINTS: Final = {
    "look-around": "search for the required parts, then read the lines",
    "backreferences": "write out the repeated text",
    "size limit": "use smaller counts in repeats such as {1000}, or use fewer classes",
    "counted repetition": r"write a literal brace as \{",
    "repetition quantifier": r"write a literal brace as \{",
    "escape sequence": r"write a literal backslash as \\",
}
_POINTED_AT: Final = re.compile(r"^    (.*)\n    ( *)(\^+)$", re.MULTILINE)


def _explain(report: str) -> str:
    """The engine's error, which follows ``error: `` below the place it points at, and what to do about it."""
    reason = report.rpartition("rror: ")[2].strip().removesuffix(".")
    pointed = _POINTED_AT.search(report)
    if pointed:
        pattern, before, marks = pointed.groups()
        reason += f": '{pattern[len(before) : len(before) + len(marks)]}'"
    hints = [hint for part, hint in _HINTS.items() if part in reason]
    return "; ".join([reason[0].lower() + reason[1:], *hints])


def _pattern_error(reason: str) -> ToolFailed:
    return ToolFailed("INVALID_REGEX", f"the pattern cannot be used: {reason}")
