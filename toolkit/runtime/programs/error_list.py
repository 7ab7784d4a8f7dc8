"""A list of errors that a model can read: in the order of the lines, each once, and not too many."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final

from toolkit.runtime.programs.result import ProgramError

MAX_ERRORS: Final = 20
MAX_MESSAGE: Final = 500


def shorten_errors(errors: Iterable[ProgramError]) -> tuple[ProgramError, ...]:
    """The first ``MAX_ERRORS`` by line, and one that counts the others; messages with long names are cut."""
    ordered = sorted(dict.fromkeys(map(_shorten, errors)), key=lambda error: (error.line, error.column))
    rest = ordered[MAX_ERRORS:]
    if not rest:
        return tuple(ordered)
    count = ProgramError(rest[0].line, 0, f"and {len(rest)} more errors, here and below", rest[0].kind)
    return (*ordered[:MAX_ERRORS], count)


def _shorten(error: ProgramError) -> ProgramError:
    if len(error.message) <= MAX_MESSAGE:
        return error
    return dataclasses.replace(error, message=f"{error.message[:MAX_MESSAGE]}...")
