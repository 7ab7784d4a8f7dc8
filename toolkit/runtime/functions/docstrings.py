"""Reads from a docstring what a tool does, and what its parameters are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Final

# The description ends at a Sphinx field, at a Google or NumPy section, or at an example.
_END: Final = re.compile(
    r"(:\w[^:]*:|>>> |(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):?\s*$)", re.IGNORECASE
)
_FIELD: Final = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_SECTION: Final = re.compile(r"(Args|Arguments|Parameters):\s*$", re.IGNORECASE)
_ITEM: Final = re.compile(r"(\s+)(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


def description_in(docstring: str | None) -> str:
    """The text before the first field, section or example.

    >>> description_in("Add two numbers.\\n\\n    Exactly.\\n\\n    :param a: the first one.")
    'Add two numbers.\\n\\nExactly.'
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    end = next((index for index, line in enumerate(lines) if _END.match(line)), len(lines))
    return "\n".join(lines[:end]).strip()


def parameters_in(docstring: str | None) -> dict[str, str]:
    """The text of each parameter: ``:param a: the first one`` or ``a: the first one`` below ``Args:``.

    >>> parameters_in("Add.\\n\\n    Args:\\n        a: The first\\n            number.\\n        b (int): The second.")
    {'a': 'The first number.', 'b': 'The second.'}
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    return {name: " ".join(words).strip() for name, words in (*_fields(lines), *_items(lines))}


def _fields(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(lines):
        found = _FIELD.match(line)
        if found:
            yield found[1], [found[2], *_read_continuation(lines[index + 1 :], deeper_than=0)]


def _items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    start = next((index + 1 for index, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    depth: int | None = None
    for index, line in enumerate(lines[start:], start):
        if line and not line[0].isspace():
            return
        found = _ITEM.match(line)
        if found and (depth is None or len(found[1]) == depth):
            depth = len(found[1])
            yield found[2], [found[3], *_read_continuation(lines[index + 1 :], deeper_than=depth)]


def _read_continuation(lines: list[str], *, deeper_than: int) -> Iterator[str]:
    for line in lines:
        if not line.strip() or len(line) - len(line.lstrip()) <= deeper_than:
            return
        yield line.strip()
