"""What a patch says, whichever of the two formats it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from toolkit.errors import ToolFailed

Format: TypeAlias = Literal["envelope", "git"]
Verb: TypeAlias = Literal["add", "update", "delete", "move", "copy"]

# What Unicode calls white space; Python's own idea of it has four control characters more.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(slots=True)
class Hunk:
    """Lines that follow each other in a file, and what becomes of them."""

    line: int
    """Where it begins in the patch."""
    rows: list[str] = field(default_factory=list)
    """Each with its mark: a blank for a line that stays, ``-`` for one that goes, ``+`` for one that comes."""
    anchor: str | None = None
    """A line that stands somewhere before them."""
    at_end: bool = False
    """Whether the file ends behind them."""
    old_start: int | None = None
    """The number of the first one, where the patch gives it."""
    old_is_open: bool = False
    """Whether the last old line has no line end, being the last of the file."""
    new_is_open: bool = False

    @property
    def old(self) -> list[str]:
        return [row[1:] for row in self.rows if row[0] != "+"]

    @property
    def new(self) -> list[str]:
        return [row[1:] for row in self.rows if row[0] != "-"]

    @property
    def added(self) -> int:
        return sum(row[0] == "+" for row in self.rows)

    @property
    def removed(self) -> int:
        return sum(row[0] == "-" for row in self.rows)


@dataclass(slots=True)
class Operation:
    """What is to be done with one file."""

    line: int
    """Where it begins in the patch."""
    verb: Verb
    path: str
    new_path: str | None = None
    """Where a file is moved or copied to."""
    content: list[str] | None = None
    """The lines of an added file."""
    content_is_open: bool = False
    """Whether the last of them has no line end."""
    hunks: list[Hunk] = field(default_factory=list)
    executable: bool | None = None
    """What the patch says of that, if anything."""

    @property
    def target(self) -> str:
        """The file there is afterwards."""
        return self.path if self.new_path is None else self.new_path


@dataclass(frozen=True, slots=True)
class Patch:
    format: Format
    operations: Sequence[Operation]


def invalid(line: int, words: str) -> ToolFailed:
    """A mistake in the patch itself, with the number of its line."""
    return ToolFailed("INVALID_PATCH", f"line {line} of the patch: {words}. Nothing was changed", line=line)
