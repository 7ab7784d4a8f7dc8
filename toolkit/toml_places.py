"""Where the keys and values of a TOML file are. ``tomllib`` reads the file; this says line and column of what it read."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and positions in lists, from the root: ``("rules", 0, "path")``."""

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'", re.DOTALL
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")
_POSITION: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_PLAINER: Final = (
    ("Illegal character '\\n'", "the text has no closing quote on this line"),
    ("Invalid value", "invalid value; put text in quotes"),
    ("Expected '=' after a key", "expected '=' after a key; write key = value"),
)


class TomlMistake(ValueError):
    """Text that is not TOML: what is wrong, and where."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class TomlPlaces:
    """Line and column of every key, counted from 1; of items of lists, too."""

    _places: dict[KeyPath, tuple[int, int]]

    def find(self, path: KeyPath) -> tuple[int, int]:
        """The place of a key, or of the nearest one that holds it.

        >>> TomlPlaces.read('a = 1\\n[[b]]\\nc = [1,\\n 2]\\n')[1].find(("b", 0, "c", 1))
        (4, 2)
        """
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, (1, 1))

    def items(self) -> Iterable[tuple[KeyPath, tuple[int, int]]]:
        return self._places.items()

    @staticmethod
    def read(text: str) -> tuple[dict[str, Any], TomlPlaces]:
        """The data of a TOML text, and where its keys are. Raises ``TomlMistake``; RecursionError if it is nested deeply."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _mistake(str(error), text) from None
        return data, TomlPlaces(_Scanner(text).scan())


def _mistake(message: str, text: str) -> TomlMistake:
    found = _POSITION.search(message)
    what = message[: found.start()] if found else message
    if found and found[1]:
        line, column = int(found[1]), int(found[2])
    else:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    if what == "Cannot overwrite a value":
        return TomlMistake("this key is given twice; keep one of them", line, _first_column(text, line))
    if what.startswith("Cannot declare"):
        return TomlMistake("this table is declared twice; join the two", line, _first_column(text, line))
    for beginning, plainer in _PLAINER:
        if what.startswith(beginning):
            what = plainer
    return TomlMistake(f"not valid TOML: {what[:1].lower()}{what[1:]}", line, column)


def _first_column(text: str, line: int) -> int:
    content = text.split("\n")[line - 1]
    return len(content) - len(content.lstrip()) + 1


@dataclass(slots=True)
class _Scanner:
    """Walks through text that is known to be valid, so it only has to find where things begin and end."""

    text: str
    at: int = 0
    places: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)
    lengths: dict[KeyPath, int] = field(default_factory=dict)
    """How many tables each ``[[list]]`` has so far."""
    starts: list[int] = field(default_factory=list)
    """Where each line begins."""

    def scan(self) -> dict[KeyPath, tuple[int, int]]:
        table: KeyPath = ()
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        self._skip(_SKIPPED)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._read_header()
            else:
                self._read_pair(table)
            self._skip(_SKIPPED)
        return self.places

    def _read_header(self) -> KeyPath:
        begin = self.at
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        keys = self._read_keys()
        self.at += brackets
        path: KeyPath = ()
        for key in keys:
            path = (*self._last_table(path), key)
            self._note(path, begin)
        if brackets == 1:
            return self._last_table(path)
        self.lengths[path] = self.lengths.get(path, 0) + 1
        self._note(self._last_table(path), begin)
        return self._last_table(path)

    def _last_table(self, path: KeyPath) -> KeyPath:
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def _read_pair(self, table: KeyPath) -> None:
        begin = self.at
        path = table
        for key in self._read_keys():
            path = (*path, key)
            self._note(path, begin)
        self.at += 1  # the equals sign
        self._skip(_BLANK)
        self._read_value(path)

    def _read_keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_BLANK)
            quoted = self.text[self.at] in "\"'"
            raw = self._skip(_STRING if quoted else _BARE_KEY)
            keys.append(tomllib.loads(f"key = {raw}")["key"] if quoted else raw)
            self._skip(_BLANK)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _read_value(self, path: KeyPath) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._skip(_STRING)
        elif first == "[":
            self._read_items(path, "]")
        elif first == "{":
            self._read_items(path, "}")
        else:
            self._skip(_SCALAR)

    def _read_items(self, path: KeyPath, end: str) -> None:
        self.at += 1
        index = 0
        self._skip(_SKIPPED)
        while self.text[self.at] != end:
            if end == "}":
                self._read_pair(path)
            else:
                self._note((*path, index), self.at)
                self._read_value((*path, index))
            index += 1
            self._skip(_SKIPPED)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(_SKIPPED)
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        raw = found[0] if found else ""
        self.at += len(raw)
        return raw

    def _note(self, path: KeyPath, offset: int) -> None:
        line = bisect_right(self.starts, offset)
        self.places.setdefault(path, (line, offset - self.starts[line - 1] + 1))
