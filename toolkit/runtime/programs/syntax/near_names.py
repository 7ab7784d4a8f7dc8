"""Which name a misspelt one most likely stands for, where a wrong guess would mislead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from toolkit.errors import find_near_miss

_GOOD_GUESS: Final = 0.7


def find_good_guess(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is nearly the same.

    >>> find_good_guess("jsn", ["json", "re"]), find_good_guess("numpy", ["enum"])
    ('json', None)
    """
    near = find_near_miss(name, candidates)
    return near if near is not None and SequenceMatcher(None, name, near).ratio() >= _GOOD_GUESS else None
