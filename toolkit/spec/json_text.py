"""JSON text -> value, stricter than the standard library: it keeps the last of two equal keys, reads NaN,
and gives up with a RecursionError on deep nesting."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

from toolkit.spec.model import Json
from toolkit.spec.problems import Problems, Unreadable, pointer_of, shown
from toolkit.spec.text_limits import MAX_DEPTH, NOT_UNICODE, is_unicode, number, too_deep

# A string is skipped as a whole, closed or not, so that brackets inside it do not count.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Misread:
    """Stands where a number cannot be read: the decoder's hooks do not know the place, the walk after it does."""

    message: str


# An object comes as a tuple of its pairs, so that equal keys are still there to be seen.
_Raw: TypeAlias = "bool | int | float | str | _Misread | list[_Raw] | tuple[tuple[str, _Raw], ...] | None"


def read_json(text: str, problems: Problems) -> Json:
    """The value of ``text``; mistakes go to ``problems``, ``Unreadable`` ends it."""
    _refuse_depth(text)
    try:
        raw: _Raw = json.loads(
            text, object_pairs_hook=tuple, parse_int=_number, parse_float=_number, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    return _settle(raw, [], problems)


def _refuse_depth(text: str) -> None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
        if depth > MAX_DEPTH:
            at = match.start()
            raise Unreadable(too_deep(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)))


def _number(text: str) -> int | float | _Misread:
    try:
        return number(text)
    except ValueError as error:
        return _Misread(str(error))


def _constant(text: str) -> _Misread:
    return _Misread(f"{text} is no JSON number")


def _settle(raw: _Raw, path: list[str | int], problems: Problems) -> Json:
    """Make plain JSON of what the decoder gave; ``path`` is one list for the walk, rendered for mistakes only."""
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
            items.append(_settle(item, path, problems))
            path.pop()
        return items
    if isinstance(raw, tuple):
        return _settle_object(raw, path, problems)
    return raw


def _settle_object(pairs: tuple[tuple[str, _Raw], ...], path: list[str | int], problems: Problems) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, item in pairs:
        path.append(key)
        if key in result:
            problems.add(f"the key {shown(key)} is there twice", pointer_of(path))
        if not is_unicode(key):
            problems.add(NOT_UNICODE, pointer_of(path))
        result.setdefault(key, _settle(item, path, problems))
        path.pop()
    return result
