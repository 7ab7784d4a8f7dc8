"""Finds what Python reads as JSON although JSON cannot express it: NaN and infinite numbers, and ``1e999``."""

from __future__ import annotations

import json
import math
from typing import Final

from toolkit.guard.files.path import display

_MAX_KEY: Final = 100
_MAX_KEYS: Final = 10


def find_not_json(value: object) -> str:
    """What is wrong with a parsed value, and where; an empty text if it can be written as JSON again.

    >>> find_not_json({"a": [1, float("nan")]})
    "has NaN at 'a.1', which is not JSON"
    """
    try:
        json.dumps(value, allow_nan=False)
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return _find_number(value)
    return ""


def _find_number(value: object) -> str:
    waiting: list[tuple[object, tuple[object, ...]]] = [(value, ())]
    while waiting:
        found, place = waiting.pop()
        if isinstance(found, float) and not math.isfinite(found):
            name = "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
            where = ".".join(display(str(key)[:_MAX_KEY]) for key in place[:_MAX_KEYS])
            return f"has {name} at '{where}', which is not JSON"
        if isinstance(found, dict):
            waiting += [(item, (*place, key)) for key, item in found.items()]
        elif isinstance(found, list):
            waiting += [(item, (*place, number)) for number, item in enumerate(found)]
    return "is not JSON"
