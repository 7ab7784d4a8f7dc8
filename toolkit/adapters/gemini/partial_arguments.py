"""Arguments that are streamed value by value, each with its path; a text may come in several pieces."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict

_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_ESCAPED: Final = re.compile(r"\\(.)")
_VALUES: Final = ("numberValue", "boolValue", "stringValue")
# Lists grow from the start; an index far past the end would only cost memory.
_MAX_GAP: Final = 1000
_MAX_STEPS: Final = 64


def put_value(arguments: JsonDict, piece: JsonDict) -> bool:
    """Puts one value into the arguments; a text is appended. Returns False if the path cannot be read.

    >>> arguments = {}
    >>> put_value(arguments, {"jsonPath": "$.to[0].name", "stringValue": "A"})
    True
    >>> put_value(arguments, {"jsonPath": "$.to[0].name", "stringValue": "da"})
    True
    >>> arguments
    {'to': [{'name': 'Ada'}]}
    """
    steps = _parse_path(piece.get("jsonPath"))
    if not steps:
        return False
    value = next((piece[key] for key in _VALUES if piece.get(key) is not None), None)
    if value is None and "nullValue" not in piece:
        return True  # only says that a text has ended, or that more follows
    place: Any = arguments
    for step, following in pairwise(steps):
        if not _fits(place, step):
            return False
        place = _enter(place, step, [] if isinstance(following, int) else {})
    last = steps[-1]
    if not _fits(place, last):
        return False
    before = _get(place, last)
    if isinstance(value, str) and isinstance(before, str):
        value = before + value
    # The SDK reads every number as a float.
    _set(place, last, int(value) if isinstance(value, float) and value.is_integer() else value)
    return True


def _parse_path(path: object) -> list[str | int]:
    if not isinstance(path, str) or not path.startswith("$"):
        return []
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(steps) == _MAX_STEPS:
            return []
        quoted = found[3] if found[3] is not None else found[4]
        if found[2] is not None:
            steps.append(int(found[2]))
        else:
            steps.append(found[1] if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = found.end()
    return steps


def _fits(place: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(place, list) and step <= len(place) + _MAX_GAP
    return isinstance(place, dict)


def _enter(place: Any, step: str | int, empty: Any) -> Any:
    inner = _get(place, step)
    if not isinstance(inner, type(empty)):
        inner = empty
        _set(place, step, inner)
    return inner


def _get(place: Any, step: Any) -> Any:
    if isinstance(place, dict):
        return place.get(step)
    return place[step] if step < len(place) else None


def _set(place: Any, step: Any, value: Any) -> None:
    if isinstance(place, list):
        place += [None] * (step + 1 - len(place))
    place[step] = value
