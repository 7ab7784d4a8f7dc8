"""Texts that match a regular expression: enough of them to test a ``pattern`` from both sides."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from random import Random
from re import _constants as codes  # type: ignore[attr-defined]  # the parser of `re` has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

_ORDINARY: Final = "abcxyzABCXYZ0123456789 _-./:@é"
_CATEGORIES: Final = {
    codes.CATEGORY_DIGIT: "0123456789",
    codes.CATEGORY_NOT_DIGIT: "abZ_-é",
    codes.CATEGORY_SPACE: " \t",
    codes.CATEGORY_NOT_SPACE: "abZ09_-é",
    codes.CATEGORY_WORD: "abcXYZ019_",
    codes.CATEGORY_NOT_WORD: " -./@",
}


def texts_matching(pattern: str, random: Random, wanted: int = 4) -> list[str]:
    """Up to ``wanted`` different texts in which ``re.search`` finds the pattern; fewer if they are hard to find, none if
    Python cannot compile the pattern."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled, tree = re.compile(pattern), parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return []
    found: dict[str, None] = {}
    for _ in range(wanted * 6):
        text = _Writer(random).sequence(tree)
        if compiled.search(text):
            found.setdefault(text)
        if len(found) == wanted:
            break
    return list(found)


class _Writer:
    """One walk over a parsed expression; groups are remembered for backreferences."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.groups: dict[int, str] = {}

    def sequence(self, tree: Iterable[Any]) -> str:
        return "".join(self.part(op, value) for op, value in tree)

    def part(self, op: Any, value: Any) -> str:
        if op is codes.LITERAL:
            return chr(value)
        if op is codes.NOT_LITERAL:
            return self.random.choice([c for c in _ORDINARY if ord(c) != value])
        if op is codes.ANY:
            return self.random.choice(_ORDINARY)
        if op is codes.IN:
            return self.one_of(value)
        if op is codes.BRANCH:
            return self.sequence(self.random.choice(value[1]))
        if op is codes.SUBPATTERN:
            return self.remember(value[0], self.sequence(value[3]))
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, inner = value
            times = self.random.choice((least, least, min(most, least + 1), min(most, least + 3)))
            return "".join(self.sequence(inner) for _ in range(times))
        if op is codes.GROUPREF:
            return self.groups.get(value, "")
        if op is codes.ATOMIC_GROUP:
            return self.sequence(value)
        return ""  # anchors and lookaround: the search afterwards checks whether they hold

    def remember(self, group: int | None, text: str) -> str:
        if group is not None:
            self.groups[group] = text
        return text

    def one_of(self, members: list[Any]) -> str:
        if members[0][0] is codes.NEGATE:
            refused = members[1:]
            return self.random.choice([c for c in _ORDINARY if not any(_holds(m, c) for m in refused)] or ["\u2603"])
        op, value = self.random.choice(members)
        if op is codes.LITERAL:
            return chr(value)
        if op is codes.RANGE:
            return chr(self.random.choice((value[0], value[1], self.random.randint(*value))))
        return self.random.choice(_CATEGORIES.get(value, _ORDINARY))


def _holds(member: Any, char: str) -> bool:
    op, value = member
    if op is codes.LITERAL:
        return bool(ord(char) == value)
    if op is codes.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return char in _CATEGORIES.get(value, "")
