"""Numbers with their nouns, for texts and messages."""

from __future__ import annotations


def format_count(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun; ``plural`` is needed if it is not the noun with an ``s``.

    >>> format_count(1, "line"), format_count(2, "entry", "entries")
    ('1 line', '2 entries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
