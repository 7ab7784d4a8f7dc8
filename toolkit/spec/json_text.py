"""JSON text -> value, stricter than the standard library, which keeps the last of two equal keys, reads NaN, and raises a
RecursionError on deep nesting."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

from toolkit.schema.problems import Problems, Unreadable, pointer_of, quote
from toolkit.schema.spec import Json
from toolkit.spec.text_limits import (
    MAX_DEPTH,
    MAX_JSON_CONTAINERS,
    NOT_UNICODE,
    TOO_DEEP,
    is_unicode,
    parse_number,
)

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
