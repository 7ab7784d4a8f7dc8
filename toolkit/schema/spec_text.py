"""YAML or JSON text -> value, by strict rules without surprises.

PyYAML only splits the text into events; this module interprets them. Plain scalars follow the core schema of YAML 1.2
(``yes``, ``on``, dates and ``012`` are strings). Tags, anchors, aliases, duplicate keys and keys that are not strings are
mistakes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.schema.problems import ODD_KEY, Problems, Unreadable, kind, pointer_of, quote
from toolkit.schema.spec import (
    MAX_DEPTH,
    MAX_JSON_CONTAINERS,
    MAX_YAML_VALUES,
    NOT_UNICODE,
    TOO_DEEP,
    Json,
    is_unicode,
    parse_number,
)

if TYPE_CHECKING:
    import yaml


_HINTS: Final = {
    "mapping values are not allowed": "; quote a text that contains ': ', and indent a key as its neighbours",
    "tab character": "; indent with spaces",
    "'\\t'": "; indent with spaces",
}
_WRITE_IT_OUT = "write the value out, or use '$defs' and '$ref'"

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

# What YAML does not allow unescaped. PyYAML checks it too, but reports bytes and not line and column.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# PyYAML treats these as line ends, as YAML 1.1 did; in YAML 1.2 they are text.
_OLD_LINE_ENDS = "\x85\u2028\u2029"


def read_yaml(text: str, problems: Problems, *, keys_as_text: bool = False) -> Json:
    """The value of ``text``. Mistakes go to ``problems``; ``Unreadable`` if reading cannot continue.

    With ``keys_as_text``, a plain key such as ``200:`` is its text; otherwise a key must be a string.
    """
    import yaml

    _refuse_unprintable(text)
    text, restore = shield_line_ends(text)
    try:
        events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return _Composer(events, restore, problems, keys_as_text).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        hint = next((text for sign, text in _HINTS.items() if sign in (error.problem or "")), "")
        raise Unreadable(f"not YAML: {error.problem}{hint}", line, column) from None
    except (ValueError, OverflowError):
        # The pure-Python scanner lets int() and chr() fail, without a place.
        raise Unreadable("not YAML: an escaped character or a version number is out of range") from None
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {quote(str(error))}") from None


def _refuse_unprintable(text: str) -> None:
    match = _UNPRINTABLE.search(text)
    if match:
        at = match.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise Unreadable(f"not YAML: the character U+{ord(match.group()):04X} must be escaped", line, column)


def shield_line_ends(text: str) -> tuple[str, dict[int, str]]:
    """Replaces ``_OLD_LINE_ENDS`` by private characters that the text does not use; also returns how to undo it."""
    present = [end for end in _OLD_LINE_ENDS if end in text]
    if not present:
        return text, {}
    lower = text.lower()
    # Neither the character itself nor the digits of its escape may occur, or undoing would hit those too.
    unused = (code for code in range(0xE000, 0xE100) if chr(code) not in text and f"{code:x}" not in lower)
    restore = dict(zip(unused, present, strict=False))
    if len(restore) < len(present):
        raise Unreadable("not YAML: write U+0085, U+2028 and U+2029 as escapes in double quotes")
    return text.translate({ord(end): code for code, end in restore.items()}), restore


def _parse_plain(text: str) -> bool | int | float | str | None:
    """An unquoted scalar; ``ValueError`` says why a number cannot be used."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return parse_number(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a JSON number: quote it if it is text")
    return text


class _Composer:
    """Builds the value of one document; recursion is bounded by ``MAX_DEPTH``."""

    def __init__(
        self, events: Iterator[yaml.Event], restore: dict[int, str], problems: Problems, keys_as_text: bool
    ) -> None:
        self._events = events
        self._restore = restore
        self._problems = problems
        self._keys_as_text = keys_as_text
        self._path: list[str | int] = []
        self._values = 0

    def document(self) -> Json:
        import yaml

        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._node(next(self._events))
        next(self._events)  # the end of the document
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise Unreadable("a second YAML document starts here", event.start_mark.line + 1, 1)
        return value

    def _node(self, event: yaml.Event) -> Json:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            self._misread(f"aliases are not supported: {_WRITE_IT_OUT}")
            return None
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        self._values += 1
        if self._values > MAX_YAML_VALUES:
            raise Unreadable(f"the text has more than {MAX_YAML_VALUES} values; split it into several files")
        if event.anchor is not None:
            self._add(f"anchors are not supported: {_WRITE_IT_OUT}")
        if event.tag is not None:
            self._misread(f"tags are not supported: remove {quote(event.tag)}")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if len(self._path) >= MAX_DEPTH:
            raise Unreadable(TOO_DEEP, event.start_mark.line + 1, event.start_mark.column + 1)
        return self._mapping() if isinstance(event, yaml.MappingStartEvent) else self._sequence()

    def _scalar(self, event: yaml.ScalarEvent) -> Json:
        text = self._text(event)
        if not is_unicode(text):
            self._misread(NOT_UNICODE)
        plain, _ = event.implicit
        try:
            return _parse_plain(text) if plain else text
        except ValueError as error:
            self._misread(str(error))
            return None

    def _sequence(self) -> list[Json]:
        import yaml

        items: list[Json] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            self._path.append(len(items))
            items.append(self._node(event))
            self._path.pop()
        return items

    def _mapping(self) -> dict[str, Json]:
        import yaml

        result: dict[str, Json] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            self._path.append(self._text(event) if isinstance(event, yaml.ScalarEvent) else ODD_KEY)
            key = self._key(event)
            if not isinstance(key, str):
                way_out = "" if isinstance(key, list | dict) else ": quote it"
                self._add(f"a key must be a string, not {kind(key)}{way_out}")
            elif key in result:
                self._add(f"the key {quote(key)} is duplicated; keep one of them")
            value = self._node(next(self._events))
            self._path.pop()
            if isinstance(key, str):
                result.setdefault(key, value)
        return result

    def _key(self, event: yaml.Event) -> Json:
        import yaml

        key = self._node(event)
        if self._keys_as_text and isinstance(event, yaml.ScalarEvent):
            return self._text(event)
        return key

    def _text(self, event: yaml.ScalarEvent) -> str:
        return event.value.translate(self._restore)

    def _add(self, message: str) -> None:
        self._problems.add(message, pointer_of(self._path))

    def _misread(self, message: str) -> None:
        self._problems.misread(message, pointer_of(self._path))


# ----------------------------------------------------------------------------------------------------------------------
# JSON text -> value, stricter than the standard library, which keeps the last of two equal keys, reads NaN, and raises a
# RecursionError on deep nesting.

# A string is skipped as a whole, closed or not, so that brackets inside it do not count.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Misread:
    """Replaces a number that cannot be read: the decoder's hooks do not know its place, the walk afterwards does."""

    message: str


# An object comes as a tuple of its pairs, so that equal keys can be found.
_Raw: TypeAlias = "bool | int | float | str | _Misread | list[_Raw] | tuple[tuple[str, _Raw], ...] | None"


def read_json(text: str, problems: Problems) -> Json:
    """The value of ``text``. Mistakes go to ``problems``; ``Unreadable`` if reading cannot continue."""
    _refuse_depth_and_number(text)
    try:
        raw: _Raw = json.loads(
            text,
            object_pairs_hook=tuple,
            parse_int=_parse_number,
            parse_float=_parse_number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error.msg}", error.lineno, error.colno) from None
    return _to_json(raw, [], problems)


def _refuse_depth_and_number(text: str) -> None:
    depth = count = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            depth += 1
            count += 1
        elif token in ("]", "}"):
            depth -= 1
        if depth > MAX_DEPTH:
            at = match.start()
            raise Unreadable(TOO_DEEP, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        if count > MAX_JSON_CONTAINERS:
            raise Unreadable(
                f"the text has more than {MAX_JSON_CONTAINERS} lists and objects; split it into several files"
            )


def _parse_number(text: str) -> int | float | _Misread:
    try:
        return parse_number(text)
    except ValueError as error:
        return _Misread(str(error))


def _refuse_constant(text: str) -> _Misread:
    return _Misread(f"{text} is not a JSON number")


def _to_json(raw: _Raw, path: list[str | int], problems: Problems) -> Json:
    """Plain JSON from the decoder's value; ``path`` is one list for the whole walk, rendered only for mistakes."""
    if isinstance(raw, _Misread):
        problems.misread(raw.message, pointer_of(path))
        return None
    if isinstance(raw, str):
        if not is_unicode(raw):
            problems.misread(NOT_UNICODE, pointer_of(path))
        return raw
    if isinstance(raw, list):
        items: list[Json] = []
        for index, item in enumerate(raw):
            path.append(index)
            items.append(_to_json(item, path, problems))
            path.pop()
        return items
    if isinstance(raw, tuple):
        return _to_object(raw, path, problems)
    return raw


def _to_object(pairs: tuple[tuple[str, _Raw], ...], path: list[str | int], problems: Problems) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, item in pairs:
        path.append(key)
        if key in result:
            problems.add(f"the key {quote(key)} is duplicated; keep one of them", pointer_of(path))
        if not is_unicode(key):
            problems.add(NOT_UNICODE, pointer_of(path))
        result.setdefault(key, _to_json(item, path, problems))
        path.pop()
    return result
