"""A parsed patch, independent of its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from toolkit.errors import ToolFailed

Format: TypeAlias = Literal["envelope", "git"]
Verb: TypeAlias = Literal["add", "update", "delete", "move", "copy"]

# White space as Unicode defines it; Python's str.strip also strips four control characters.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(slots=True)
class Hunk:
    """Consecutive lines of a file, and how they change."""

    line: int
    """Its line number in the patch."""
    rows: list[str] = field(default_factory=list)
    """Each with its mark: a blank to keep the line, ``-`` to remove it, ``+`` to add it."""
    anchor: str | None = None
    """A line that occurs somewhere before them."""
    at_end: bool = False
    """Whether they are the last lines of the file."""
    old_start: int | None = None
    """Number of the first old line, if the patch gives it."""
    old_is_open: bool = False
    """Whether the last old line ends the file without a line end."""
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
class PatchOperation:
    """What to do with one file."""

    line: int
    """Its line number in the patch."""
    verb: Verb
    path: str
    new_path: str | None = None
    """Where the file is moved or copied to."""
    content: list[str] | None = None
    """The lines of an added file."""
    content_is_open: bool = False
    """Whether the last of them has no line end."""
    hunks: list[Hunk] = field(default_factory=list)
    executable: bool | None = None
    """Whether to make it executable; None leaves it as it is."""

    @property
    def target(self) -> str:
        """The path of the file afterwards."""
        return self.path if self.new_path is None else self.new_path


@dataclass(frozen=True, slots=True)
class Patch:
    format: Format
    operations: Sequence[PatchOperation]


def invalid(line: int, problem: str) -> ToolFailed:
    """The error for a mistake in the patch itself, with its line number."""
    return ToolFailed("INVALID_PATCH", f"line {line} of the patch: {problem}. Nothing was changed", line=line)
