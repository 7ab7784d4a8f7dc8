"""Finding the lines that match, in time linear in the text whatever the pattern is.

Patterns are judged by Rust's ``regex``, which pydantic-core brings along and which never tries anything twice; it says
yes or no. So a whole block of lines is asked about first, then its halves, down to the lines, or to the lines around a
text that every match holds. A pattern is judged line by line: it never matches across a line feed.

>>> matcher = compile("err(or)?: .*full", ignore_case=True)
>>> matcher.matches("Error: disk FULL")
True
>>> block = b"ok\\nerror: full\\nerr: pipe\\n"
>>> [block[start:end] for start, end in matcher.spans(block)]
[b'error: full']
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeAlias

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolkit.builtin.search.regex_facts import Traits, traits
from toolkit.errors import ToolFailed

MAX_PATTERN_CHARACTERS: Final = 4096
# Steps that counted repeats may add. At worst the engine goes through all of them for every character; with so many
# it still gets through some sixty kilobytes in a second.
MAX_WEIGHT: Final = 1000

# What finding columns may cost in all, in characters times steps: about a second at worst.
_COLUMN_BUDGET: Final = 50_000_000
_MAX_COLUMN: Final = 4096
# A shorter needle stands in too many lines to be worth looking for.
_GOOD_NEEDLE: Final = 3

# What stands for a byte that is no UTF-8.
_WRONG_BYTE: Final = "\ufffd"
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$#&-~")

Span: TypeAlias = tuple[int, int]
_Test: TypeAlias = Callable[[bytes | str], bool]


def compile(pattern: str, *, regex: bool = True, ignore_case: bool = False) -> Matcher:
    """The matcher for a regular expression, or for a text that stands for itself.

    Raises ``INVALID_REGEX`` for what the engine does not know and for what would cost too much.
    """
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise _refused(f"it has {len(pattern)} characters, and at most {MAX_PATTERN_CHARACTERS} are taken")
    if regex:
        _tester(pattern)  # by itself: what is put before it below must not change what an error points at
        found = traits(pattern)
    else:
        found = Traits(pattern, is_plain=True, has_line_feed="\n" in pattern)
        pattern = escape(pattern)
    if found.has_line_feed:
        raise _refused("it asks for a line feed, but lines are searched one by one; search for a part within one line")
    if found.weight > MAX_WEIGHT:
        raise _refused(f"its counted repeats, as in a{{1000}}, multiply to more than {MAX_WEIGHT} steps; lower them")
    if ignore_case:
        return Matcher(f"(?i){pattern}", replace(found, needle=None, is_plain=False))
    return Matcher(pattern, found)


def for_expression(pattern: str) -> Matcher:
    """The matcher for a regular expression that we wrote ourselves, and that may be long for this reason."""
    return Matcher(pattern, traits(pattern))


def escape(text: str) -> str:
    """The expression that matches the text and nothing else."""
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


class Matcher:
    """One pattern, ready to be looked for in any number of texts. Made by ``compile``."""

    def __init__(self, pattern: str, found: Traits) -> None:
        self._pattern = pattern
        self._text = found.needle or ""
        self._needle = self._text.encode()
        self._raw_needle = b"" if _WRONG_BYTE in self._text else self._needle
        self._is_plain = found.is_plain
        self._is_line_by_line = found.is_line_by_line
        self._step_cost = 1 + found.weight
        self._column_budget = _COLUMN_BUDGET
        self._test = _tester(f"(?m){pattern}")
        # Which looks for a text several times as fast as `in` does.
        self._holds_needle = _tester(escape(self._text))

    def matches(self, line: str) -> bool:
        """Whether something in the line matches."""
        return self._text in line if self._is_plain else self._test(line)

    def may_match(self, data: bytes) -> bool:
        """Whether it is worth looking for lines in what was read, which need not be made ready for ``spans`` yet."""
        if not self._raw_needle:
            return True
        return self._holds_needle(data) if data.isascii() else self._raw_needle in data

    def spans(self, block: bytes) -> list[Span]:
        """Where the matching lines of a block begin and end, line feeds left out.

        ``block`` is whole lines of valid UTF-8, each ended by a line feed but perhaps the last; see ``lines.blocks``.
        """
        if not block or (self._needle and not self._holds_needle(block)):
            return []
        if self._is_plain:
            return self._lines_around_needle(block, None)
        if not self._is_line_by_line and not self._test(block):
            return []
        if len(self._needle) >= _GOOD_NEEDLE:
            return self._lines_around_needle(block, self._test)
        return self._every_line(block) if self._is_line_by_line else self._halved(block)

    def column(self, line: str) -> int | None:
        """The character, counted from 1, where the first match begins in a line that matches.

        The engine does not tell, so it is asked for every place whether a match begins there. None when that would be
        too much work, in this line or after those before.
        """
        if self._is_plain:
            return line.find(self._text) + 1
        at_start, behind_one = self._begins_at_start, self._begins_behind_one
        if at_start is None or behind_one is None or len(line) > _MAX_COLUMN or not self._may_spend(len(line)):
            return None
        if at_start(line):
            return 1
        # What stands before a place decides about word boundaries, so one character is left there.
        for at in range(len(line)):
            if not self._may_spend(len(line) - at):
                return None
            if behind_one(line[at:]):
                return at + 2
        return None

    def near(self, line: str) -> int:
        """A place not far behind the first match in a line that matches; 0 when it would be too much work to find."""
        if not self._may_spend(len(line) * len(line).bit_length()):
            return 0
        low, high = 0, len(line)
        while low < high:
            middle = (low + high) // 2
            if self.matches(line[:middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def _may_spend(self, characters: int) -> bool:
        self._column_budget -= characters * self._step_cost
        return self._column_budget >= 0

    @cached_property
    def _begins_at_start(self) -> _Test | None:
        return _tester_or_none(rf"\A(?:{self._pattern})")

    @cached_property
    def _begins_behind_one(self) -> _Test | None:
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

    def _halved(self, block: bytes) -> list[Span]:
        """The lines of a block that matches as a whole: whatever matches in a line does so in each part around it."""
        found: list[Span] = []
        waiting = [(0, len(block) - block.endswith(b"\n"))]
        while waiting:
            start, end = waiting.pop()
            if not self._test(block[start:end]):
                continue
            middle = (start + end) // 2
            cut = block.find(b"\n", middle, end)
            if cut < 0:
                cut = block.rfind(b"\n", start, middle)
            if cut < 0:
                found.append((start, end))
            else:
                waiting += (cut + 1, end), (start, cut)
        return found


def _tester(pattern: str) -> _Test:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except SchemaError as error:
        raise _refused(f"{_reason(str(error))}. With regex=false it is searched for as it stands") from None


def _tester_or_none(pattern: str) -> _Test | None:
    """None for what can be matched but not be put into brackets: an expression that ends in a comment."""
    try:
        return _tester(pattern)
    except ToolFailed:
        return None


_HINTS: Final = {
    "look-around": "search for the parts that must be there, and look at the lines",
    "backreferences": "write the repeated text out",
    "size limit": "lower the counts of repeats such as {1000}, or use fewer classes",
    "counted repetition": r"a brace that is meant as such is written \{",
    "repetition quantifier": r"a brace that is meant as such is written \{",
    "escape sequence": r"a backslash that is meant as such is written \\",
}
_POINTED_AT: Final = re.compile(r"^    (.*)\n    ( *)(\^+)$", re.MULTILINE)


def _reason(told: str) -> str:
    """What the engine says, which ends in ``error: ...`` below the place it points at, and what to do about it."""
    words = told.rpartition("rror: ")[2].strip().removesuffix(".")
    pointed = _POINTED_AT.search(told)
    if pointed:
        pattern, before, marks = pointed.groups()
        words += f": '{pattern[len(before) : len(before) + len(marks)]}'"
    hints = [hint for part, hint in _HINTS.items() if part in words]
    return "; ".join([words[0].lower() + words[1:], *hints])


def _refused(words: str) -> ToolFailed:
    return ToolFailed("INVALID_REGEX", f"the pattern cannot be used: {words}")
