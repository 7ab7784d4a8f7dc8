"""Findings with the line and the column of their places, and with paths that the reader's terminal can open."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from toolkit.errors import SetupError
from toolkit.schema.problems import ODD_KEY, Finding, Unreadable, below, pointer_of
from toolkit.schema.spec_files import read_plain_file
from toolkit.schema.spec_text import shield_line_ends
from toolkit.toml_places import TomlMistake, TomlPlaces

# ----------------------------------------------------------------------------------------------------------------------
# Where in a text the value of a JSON pointer is: line and column, both from 1.
#
# A key counts as the place of its value. Nothing here runs unless a finding is reported, and a text that is only partly
# right has places as far as it could be read.


class PlaceTable:
    """The places of some pointers and of everything above them; a pointer that leads nowhere has the place above it."""

    def __init__(self, pointers: Collection[str]) -> None:
        self._wanted = {above for pointer in pointers for above in _list_above(pointer)}
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, pointer: str) -> tuple[int, int]:
        """Line and column; (1, 1) for the whole text, and if nothing of it could be read."""
        if not pointer:
            return 1, 1
        return next((self._found[above] for above in _list_above(pointer) if above in self._found), (1, 1))

    def enter(self, pointer: str | None, key: str | int) -> str | None:
        """The pointer of a key, or None if nothing at or below it is wanted."""
        inner = None if pointer is None else below(pointer, key)
        return inner if inner in self._wanted else None

    def record(self, pointer: str | None, line: int, column: int) -> None:
        """Of two equal keys the second one counts: it is the mistake."""
        if pointer is not None:
            self._found[pointer] = (line, column)


def _list_above(pointer: str) -> Iterator[str]:
    """The pointer itself, then each one above it."""
    yield pointer
    while pointer:
        pointer = pointer.rpartition("/")[0]
        yield pointer


@dataclass(slots=True)
class _Container:
    pointer: str | None
    is_object: bool
    index: int = 0
    key: str | None = None
    """The pointer of the key that was read last."""
    is_at_key: bool = True


class Cursor:
    """Follows the values of a text in their order: keys and scalars, and where lists and objects start and end."""

    def __init__(self, places: PlaceTable, pointer: str | None = "") -> None:
        self._places = places
        self._root = pointer
        self._stack: list[_Container] = []

    def scalar(self, read: Callable[[], str], line: int, column: int) -> None:
        """A key or a value; ``read`` returns its text, which only a key needs."""
        self._next_value(read, line, column)

    def open(self, is_object: bool, line: int, column: int) -> None:
        self._stack.append(_Container(self._next_value(lambda: ODD_KEY, line, column), is_object))

    def close(self) -> None:
        if self._stack:
            self._stack.pop()

    def _next_value(self, read_key: Callable[[], str], line: int, column: int) -> str | None:
        """The pointer of what comes next; None for a key, and for what is not wanted."""
        if not self._stack:
            self._places.record(self._root, line, column)
            return self._root
        top = self._stack[-1]
        if not top.is_object:
            pointer = self._places.enter(top.pointer, top.index)
            top.index += 1
            self._places.record(pointer, line, column)
            return pointer
        top.is_at_key = not top.is_at_key
        if top.is_at_key:
            return top.key
        top.key = self._places.enter(top.pointer, read_key()) if top.pointer is not None else None
        self._places.record(top.key, line, column)
        return None


class Lines:
    """Line and column of an offset."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


# ----------------------------------------------------------------------------------------------------------------------
# Where in a JSON text the value of a JSON pointer is.

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s{}\[\],:"]++', re.DOTALL)


def find_in_json(text: str, places: PlaceTable) -> None:
    cursor, lines = Cursor(places), Lines(text)
    for match in _TOKEN.finditer(text):
        token, place = match.group(), lines.place(match.start())
        if token in ("]", "}"):
            cursor.close()
        elif token in ("[", "{"):
            cursor.open(token == "{", *place)
        else:
            cursor.scalar(partial(_read_string, token), *place)


def _read_string(token: str) -> str:
    try:
        value = json.loads(token)
    except ValueError:
        return ODD_KEY
    return value if isinstance(value, str) else ODD_KEY


# ----------------------------------------------------------------------------------------------------------------------
# Where in a TOML text the value of a JSON pointer is.


def find_in_toml(text: str, places: PlaceTable) -> None:
    """Records tables at their headers, and keys where they are set, also inside inline tables."""
    try:
        _, found = TomlPlaces.read(text)
    except (TomlMistake, RecursionError):
        return  # that is the finding, and it has its own place
    for path, place in found.items():
        places.record(pointer_of(path), *place)


# ----------------------------------------------------------------------------------------------------------------------
# Where in a YAML text the value of a JSON pointer is.


def find_in_yaml(text: str, places: PlaceTable) -> None:
    import yaml

    cursor = Cursor(places)
    try:
        shielded, restore = shield_line_ends(text)
        for event in yaml.parse(shielded, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            place = (event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, yaml.CollectionStartEvent):
                cursor.open(isinstance(event, yaml.MappingStartEvent), *place)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                cursor.close()
            elif isinstance(event, yaml.ScalarEvent):
                cursor.scalar(partial(event.value.translate, restore), *place)
            elif isinstance(event, yaml.AliasEvent):
                cursor.scalar(lambda: ODD_KEY, *place)
    except Exception:  # the pure-Python scanner raises several types; the places found so far are right
        return


_FINDERS: Final[dict[str, Callable[[str, PlaceTable], None]]] = {
    ".json": find_in_json,
    ".toml": find_in_toml,
    ".yaml": find_in_yaml,
    ".yml": find_in_yaml,
}
_MAX_BYTES: Final = 32 * 1024 * 1024


def locate(findings: Iterable[Finding], base: Path) -> list[Finding]:
    """The same findings with line and column; ``base`` is the folder that their sources are relative to."""
    return _with_others(findings, lambda found: _locate_in_files(found, base))


def _locate_in_files(found: list[Finding], base: Path) -> list[Finding]:
    by_source: dict[str, list[int]] = {}
    for index, finding in enumerate(found):
        if not finding.file:
            by_source.setdefault(finding.source, []).append(index)
    for source, indexes in by_source.items():
        for index, located in zip(indexes, _locate_in_file([found[i] for i in indexes], base / source), strict=True):
            found[index] = located
    return found


def locate_in_text(findings: Iterable[Finding], text: str, suffix: str) -> list[Finding]:
    """The same findings with their line and column in ``text``, by the rules for files with this suffix."""
    return _with_others(findings, lambda found: _locate_in_text(found, text, suffix))


def _locate_in_text(found: list[Finding], text: str, suffix: str) -> list[Finding]:
    missing = [finding.pointer for finding in found if not finding.line]
    if not missing or suffix not in _FINDERS:
        return found
    places = PlaceTable(missing)
    _FINDERS[suffix](text, places)
    return [finding if finding.line else _at(finding, *places.find(finding.pointer)) for finding in found]


def show_path(path: str | Path) -> str:
    """The path relative to the current directory, or the absolute one where that is shorter.

    >>> show_path(Path.cwd() / "acme" / "tools.yaml")
    'acme/tools.yaml'
    """
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute)
    shown = relative if len(relative) <= len(absolute) else absolute
    return os.fsencode(shown).decode("utf-8", "backslashreplace").replace(os.sep, "/")


def _with_others(findings: Iterable[Finding], find: Callable[[list[Finding]], list[Finding]]) -> list[Finding]:
    """The findings as ``find`` locates them; so are the other places that their messages name."""
    given = list(findings)
    found = find([*given, *(Finding("", one.other.source, one.other.pointer) for one in given if one.other)])
    others = iter(found[len(given) :])
    return [_name_other(finding, next(others)) if finding.other else finding for finding in found[: len(given)]]


def _name_other(finding: Finding, other: Finding) -> Finding:
    message = finding.message.replace(str(finding.other), other.place) if other.line else finding.message
    return replace(finding, message=message, other=None)


def _locate_in_file(findings: list[Finding], file: Path) -> list[Finding]:
    if not os.path.lexists(file):  # a module, or a file that is missing: that is the finding
        return findings
    shown = show_path(file)
    findings = [replace(finding, file=shown) for finding in findings]
    try:
        text = "" if file.is_dir() else read_plain_file(file, _MAX_BYTES)
    except Unreadable:
        return findings
    return _locate_in_text(findings, text, file.suffix)


def _at(finding: Finding, line: int, column: int) -> Finding:
    return replace(finding, line=line, column=column)


# ----------------------------------------------------------------------------------------------------------------------
# Line and column of findings. What finds them is imported only when something is reported.


@contextmanager
def located_errors(base: Path) -> Iterator[None]:
    """Gives line and column to the findings of an error that is raised inside; ``base`` is as for ``locate``."""
    try:
        yield
    except SetupError as error:
        if error.findings:
            error.replace_findings(locate(error.findings, base))
        raise
