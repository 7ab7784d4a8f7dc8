"""Findings in spec files: their form ``message @ file:pointer``, and the list of the mistakes in one file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from toolkit.jsonschema.pointer import escape_key

if TYPE_CHECKING:
    from toolkit.spec.model import Json

MAX_SHOWN: Final = 80  # characters of a foreign text in a message
MAX_PROBLEMS: Final = 100  # in one file: a hostile text must not cause an endless message


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake or advice at one place in a spec file.

    >>> str(Finding("'name' is missing", "tools/read.yaml", "/tools/3"))
    "'name' is missing @ tools/read.yaml:/tools/3"
    """

    message: str
    source: str
    pointer: str

    def __str__(self) -> str:
        return f"{self.message} @ {self.source}:{self.pointer}"


class Unreadable(Exception):
    """Nothing more can be read from this text; the message says why."""


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
        self.found.append(Finding(str(reason), self.source, ""))


def below(pointer: str, key: str | int) -> str:
    """The pointer of a key or an index below ``pointer``, fit to be printed on one line.

    >>> below("/tools/3", "a/b")
    '/tools/3/a~1b'
    """
    text = escape_key(clip(str(key)))
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"{pointer}/{text}"


def pointer_of(path: Iterable[str | int]) -> str:
    return reduce(below, path, "")


def clip(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def quote(text: str) -> str:
    """A foreign text for a message: quoted, on one line, of limited length."""
    return repr(clip(text))


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
