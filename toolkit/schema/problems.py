"""Findings in files: their form ``file:line:column: message (pointer)``, and the list of the mistakes in one file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from toolkit.errors import nearest
from toolkit.schema.keywords import escape_key, split_pointer

if TYPE_CHECKING:
    from toolkit.schema.spec import Json

MAX_SHOWN: Final = 80  # characters of a foreign text in a message
ODD_KEY: Final = "?"  # in a pointer, for a key that is not text
MAX_PROBLEMS: Final = 100  # in one file: a hostile text must not cause an endless message


@dataclass(frozen=True, slots=True)
class SpecPlace:
    """A pointer in a file, or the name of a module."""

    source: str
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.pointer}" if self.pointer else self.source


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake or advice at one place in a file.

    ``source`` is the file, relative to the project, or the name of a module. ``locate`` finds out ``line`` and ``column``,
    and ``file``: the path as it is shown, relative to the current directory.

    >>> str(Finding("'name' is missing", "tools/read.yaml", "/tools/3", line=7, column=5))
    "tools/read.yaml:7:5: 'name' is missing (/tools/3)"
    """

    message: str
    source: str
    pointer: str = ""
    line: int = 0
    column: int = 0
    file: str = ""
    other: SpecPlace | None = None
    """Another place, which the message names as ``str(other)``; ``locate`` puts its line and column there."""

    def __str__(self) -> str:
        return f"{self.place}: {self.message} ({self.pointer})" if self.pointer else f"{self.place}: {self.message}"

    @property
    def place(self) -> str:
        """``file:line:column``, or what of it is known."""
        file = self.file or self.source
        return f"{file}:{self.line}:{self.column}" if self.line else file

    def as_json(self) -> dict[str, str | int | None]:
        """For scripts; ``line`` and ``column`` are null if the place is not in a text that could be read."""
        return {
            "file": self.file or self.source,
            "line": self.line or None,
            "column": self.column or None,
            "message": self.message,
            "pointer": self.pointer,
        }


class Unreadable(Exception):
    """Nothing more can be read from this text; the message says why, and ``line`` and ``column`` where, if they are known."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class Problems:
    """The mistakes of one file, in the order they were found."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Finding] = []
        self._misread: set[str] = set()

    def add(self, message: str, pointer: str) -> None:
        if pointer in self._misread:
            return
        if len(self.found) == MAX_PROBLEMS:
            raise Unreadable(f"more than {MAX_PROBLEMS} mistakes; the rest is not listed")
        self.found.append(Finding(message, self.source, pointer))

    def misread(self, message: str, pointer: str) -> None:
        """As ``add``, for a value that could not be read. Later mistakes at the same place are ignored."""
        self.add(message, pointer)
        self._misread.add(pointer)

    def add_unreadable(self, reason: Unreadable) -> None:
        """Adds why reading stopped; ``MAX_PROBLEMS`` does not apply."""
        self.found.append(Finding(str(reason), self.source, "", reason.line, reason.column))


def below(pointer: str, key: str | int) -> str:
    """The pointer of a key or an index below ``pointer``, fit to be printed on one line.

    >>> below("/tools/3", "a/b")
    '/tools/3/a~1b'
    """
    text = escape_key(clip(str(key)))
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"{pointer}/{text}"


def extend_pointer(pointer: str, inner: str) -> str:
    """The pointer of what ``inner`` leads to in the value at ``pointer``, fit to be printed on one line.

    >>> extend_pointer("/inputSchema", "/properties/a\\nb")
    '/inputSchema/properties/a\\\\nb'
    """
    return reduce(below, split_pointer(inner), pointer)


def pointer_of(path: Iterable[str | int]) -> str:
    return reduce(below, path, "")


def clip(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def quote(text: str) -> str:
    """A foreign text for a message: quoted, on one line, of limited length."""
    return repr(clip(text))


def is_misspelt(key: str, table: Iterable[str], known: Iterable[str]) -> bool:
    """Whether an unknown key of a table was meant to be ``key``: then it need not be reported as missing."""
    return any(nearest(other, [key]) for other in table if other not in known)


def unknown_key(key: str, known: Iterable[str], more: str = "") -> str:
    """The message for a key that is not one of ``known``; ``more`` is said if none of them resembles it.

    >>> unknown_key("pakage", ["specs", "package"])
    "unknown key 'pakage'. Did you mean 'package'?"
    >>> unknown_key("colour", ["specs", "package"])
    "unknown key 'colour'; the keys are specs, package"
    """
    known = list(known)
    near = nearest(key, known)
    return (
        f"unknown key {quote(key)}.{near}"
        if near
        else f"unknown key {quote(key)}; {more or 'the keys are ' + ', '.join(known)}"
    )


def kind(value: Json) -> str:
    """The JSON type of a value, with an article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"
