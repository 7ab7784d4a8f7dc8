"""Hints for a model that copied lines from ``read_file`` in a way that cannot match the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_NUMBERED: Final = re.compile(r"\s*\d+\t")
_UNREADABLE: Final = re.compile("[\udc80-\udcff]")


def copy_hints(text: str, wanted: Sequence[str], leave_out: str) -> Iterator[str]:
    """What may be wrong with the ``wanted`` lines; ``leave_out`` says what to do about bytes that are not UTF-8."""
    if all(_NUMBERED.match(line) for line in wanted):
        yield "Remove the line numbers: they are not part of the file."
    if any("\ufffd" in line for line in wanted) and _UNREADABLE.search(text):
        yield f"The file has bytes that are not UTF-8, which read_file shows as \ufffd: {leave_out}."
