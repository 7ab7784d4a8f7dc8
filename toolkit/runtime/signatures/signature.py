"""What one tool takes and returns, as compact Python text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolkit.visible import hidden_pattern

MAX_DOC: Final = 160
"""The most characters of a tool's one line."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[^a-z])")


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """One tool as a Python function. The types are plain: limits and patterns are left out."""

    name: str
    """The name on the wire."""
    attribute: str
    """The name in ``tools.<attribute>(...)``."""
    parameters: str
    """The keyword parameters with types and defaults; ``...`` is the default of one that may be left out and has none."""
    output: str
    """The return type."""
    argument_classes: tuple[str, ...]
    """Each class or alias that the parameters mention, directly or not, as one line of Python."""
    output_classes: tuple[str, ...]
    """The same for the return type."""
    doc: str
    """The first sentence of the description."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Parameters whose Python name is not their name on the wire: both names."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Every class and alias that the signature mentions."""
        return (*self.argument_classes, *self.output_classes)


def first_sentence(text: str) -> str:
    """The first sentence of a description on one line, cut if it is long.

    >>> first_sentence("Read a file, e.g. README.md. Images\\nare attached.")
    'Read a file, e.g. README.md.'
    """
    words = " ".join(hidden_pattern("").sub(" ", text).split())
    sentence = _SENTENCE.split(words, maxsplit=1)[0]
    return sentence if len(sentence) <= MAX_DOC else f"{sentence[: MAX_DOC - 1].rstrip()}…"
