"""Patterns that a provider with a small regular-expression engine takes: Anthropic."""

from __future__ import annotations

import re
from typing import Final

from toolkit.schema.accepts import compile_pattern

# "Simple" repetition counts are accepted and large ones are not; the provider gives no number.
MAX_REPEAT: Final = 64
_PIECE: Final = re.compile(
    r"""
      \\[dws]                                            # classes
    | \\[^A-Za-z0-9]                                     # escaped punctuation
    | \\[nrt]
    | \[\^?(?:\\[dws]|\\[^A-Za-z0-9]|\\[nrt]|[^\]\\\[])+\]  # sets
    | \((?:\?:)?                                         # groups
    | [)|.^$]
    | [*+?]
    | \{(?P<fewest>\d{1,4})(?:,(?P<most>\d{1,4})?)?\}
    | [^\\\[\](){}|.^$*+?]                               # characters
    """,
    re.VERBOSE,
)


def is_plain_pattern(pattern: str) -> bool:
    """Whether a pattern has only classes, sets, groups, alternatives, anchors and repetitions with small counts.

    >>> is_plain_pattern(r"^[a-z_]+\\d{4}$"), is_plain_pattern(r"\\bword\\b"), is_plain_pattern("^.{1,5000}$")
    (True, False, False)
    """
    if compile_pattern(pattern) is None:
        return False
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return False
        counts = [int(count) for count in (piece["fewest"], piece["most"]) if count]
        if any(count > MAX_REPEAT for count in counts):
            return False
        at = piece.end()
    return True
