"""Which options of a program are known to be harmless, and whether a list of arguments has any other.

Promise: an option counts only in its exact spelling. Short options that are combined (``-la``) are taken apart, abbreviations
of long ones are never known, and a value that is a separate word must not look like an option. So a table that is wrong
about a value cannot hide an option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_NEGATIVE_NUMBER: Final = re.compile(r"-[0-9]+")


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The harmless options of one program, and how many operands it may have.

    >>> table = make_table("nu", "k", "--stat --format= --color[=]", operands=1)
    >>> table.find_unknown(["-un", "-k2", "--color=always", "file"]), table.find_unknown(["-uo", "file"])
    (None, '-uo')
    """

    flags: str
    """Letters of options without a value."""
    valued: str
    """Letters of options with a value, in the same word or in the next."""
    glued: str
    """Letters of options whose value, if any, is in the same word."""
    long_flags: frozenset[str]
    long_valued: frozenset[str]
    long_optional: frozenset[str]
    operands: int | None
    """The maximum number; None for any."""
    takes_numbers: bool
    """Whether ``-5`` is an option."""
    ends_at_operand: bool
    """Whether everything behind the first operand is an operand."""

    def find_unknown(self, words: Sequence[str]) -> str | None:
        """The first word that is not known to be harmless; None if all are."""
        place = operands = 0
        while place < len(words):
            word = words[place]
            if word == "--" or (self.ends_at_operand and not _is_option(word)):
                rest = words[place + (word == "--") :]
                allowed = len(rest) if self.operands is None else self.operands - operands
                return rest[allowed] if len(rest) > allowed else None
            if not _is_option(word):
                operands += 1
                if self.operands is not None and operands > self.operands:
                    return word
                place += 1
                continue
            used = self._count_words(word)
            if used == 0 or (used == 2 and not _is_value(words[place + 1 : place + 2])):
                return word
            place += used
        return None

    def find_operands(self, words: Sequence[str]) -> list[str]:
        """The words that are neither options nor their values, if ``find_unknown`` finds nothing.

        >>> make_table("q", "j").find_operands(["-q", "-j", "4", "origin", "--", "main"])
        ['origin', 'main']
        """
        operands: list[str] = []
        place = 0
        while place < len(words):
            word = words[place]
            if word == "--":
                return [*operands, *words[place + 1 :]]
            if not _is_option(word):
                operands.append(word)
            place += max(1, self._count_words(word)) if _is_option(word) else 1
        return operands

    def _count_words(self, word: str) -> int:
        """How many words an option takes, one or two; 0 if it is not known."""
        if self.takes_numbers and _NEGATIVE_NUMBER.fullmatch(word):
            return 1
        if word.startswith("--"):
            name, has_value, _ = word.partition("=")
            if has_value:
                return int(name in self.long_valued or name in self.long_optional)
            return 2 if name in self.long_valued else int(name in self.long_flags or name in self.long_optional)
        for place, letter in enumerate(word[1:], 2):
            if letter in self.glued:
                return 1
            if letter in self.valued:
                return 1 if word[place:] else 2
            if letter not in self.flags:
                return 0
        return 1


def make_table(
    flags: str = "",
    valued: str = "",
    long: str = "",
    *,
    glued: str = "",
    operands: int | None = None,
    takes_numbers: bool = False,
    ends_at_operand: bool = False,
) -> OptionTable:
    """``long`` lists options; one that ends in ``=`` needs a value, one that ends in ``[=]`` may have one."""
    names = long.split()
    return OptionTable(
        flags,
        valued,
        glued,
        frozenset(name for name in names if not name.endswith(("=", "[=]"))),
        frozenset(name[:-1] for name in names if name.endswith("=")),
        frozenset(name[:-3] for name in names if name.endswith("[=]")),
        operands,
        takes_numbers,
        ends_at_operand,
    )


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _is_value(following: Sequence[str]) -> bool:
    return bool(following) and (not _is_option(following[0]) or _NEGATIVE_NUMBER.fullmatch(following[0]) is not None)
