"""JSON as the page reads it."""

from __future__ import annotations

import json
import math
from typing import Any


def to_json(value: Any) -> bytes:
    """A value as JSON, in ASCII: names of files and texts of tools may hold lone surrogates, which cannot be encoded
    otherwise. Numbers that JSON cannot express are written as texts."""
    try:
        return _dump(value)
    except ValueError:
        return _dump(_as_texts(value))


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=str, allow_nan=False).encode()


def _as_texts(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _as_texts(item) for key, item in value.items()}
    return [_as_texts(item) for item in value] if isinstance(value, list | tuple) else value
