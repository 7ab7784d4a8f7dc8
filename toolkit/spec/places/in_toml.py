"""Where in a TOML text the value of a JSON pointer is. The text has been read by ``tomllib`` before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from toolkit.spec.places.cursor import Cursor, Lines, PlaceTable

_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|[\[\]{}=,\n]"
    r"|[^\s\"'#\[\]{}=,]++",
    re.DOTALL,
)
_DEPTHS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
_KEY_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"' r"|'([^']*)'" r"|([^\s.\"']+)")


def find_in_toml(text: str, places: PlaceTable) -> None:
    """Records tables at their headers, and keys where they are set, also inside inline tables."""
    reader = _Reader(places, Lines(text))
    for tokens in _list_statements(text):
        reader.read(text, tokens)


def _list_statements(text: str) -> Iterator[list[re.Match[str]]]:
    """The tokens of each header and each ``key = value``; a value may go over several lines."""
    tokens: list[re.Match[str]] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n" and depth == 0:
            yield tokens
            tokens = []
        elif token != "\n" and not token.startswith("#"):
            depth += _DEPTHS.get(token, 0)
            tokens.append(match)
    yield tokens


class _Reader:
    def __init__(self, places: PlaceTable, lines: Lines) -> None:
        self._places = places
        self._lines = lines
        self._table: str | None = ""
        self._counts: dict[tuple[str, ...], int] = {}

    def read(self, text: str, tokens: Sequence[re.Match[str]]) -> None:
        if not tokens:
            return
        place = self._lines.place(tokens[0].start())
        at = next((index for index, match in enumerate(tokens) if match.group() == "="), None)
        if at is None:
            is_list = len(tokens) > 1 and tokens[1].group() == "["
            self._read_header(text[tokens[0].end() : tokens[-1].start()].strip("[] \t"), is_list, place)
            return
        pointer = self._enter(self._table, _split_key(text[tokens[0].start() : tokens[at].start()]), place)
        cursor = Cursor(self._places, pointer)
        for match in tokens[at + 1 :]:
            self._add_token(cursor, match)
        self._places.record(pointer, *place)  # the key, not the value

    def _read_header(self, key: str, is_list: bool, place: tuple[int, int]) -> None:
        parts = _split_key(key)
        table: str | None = ""
        for count, part in enumerate(parts, 1):
            table = self._enter(table, [part], place if count == len(parts) else None)
            name = tuple(parts[:count])
            if is_list and count == len(parts):
                self._counts[name] = self._counts.get(name, -1) + 1
            if name in self._counts:
                table = self._enter(table, [self._counts[name]], place if count == len(parts) else None)
        self._table = table

    def _enter(self, pointer: str | None, keys: Sequence[str | int], place: tuple[int, int] | None) -> str | None:
        for key in keys:
            pointer = self._places.enter(pointer, key)
            if place is not None:
                self._places.record(pointer, *place)
        return pointer

    def _add_token(self, cursor: Cursor, match: re.Match[str]) -> None:
        token, place = match.group(), self._lines.place(match.start())
        if token in ("[", "{"):
            cursor.open(token == "{", *place)
        elif token in ("]", "}"):
            cursor.close()
        elif token not in ("=", ","):
            cursor.scalar(partial(_read_key, token), *place)


def _read_key(text: str) -> str:
    return ".".join(_split_key(text))


def _split_key(text: str) -> list[str]:
    return [double or single or bare for double, single, bare in _KEY_PART.findall(text)]
