"""The two spellings of Gemini's keys: ``functionCall`` by the service, ``function_call`` by its SDKs.

Decoders read camel case; what came in snake case goes back in snake case.
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict

# The JSON below these keys belongs to tools and users; its keys are not respelled.
_FOREIGN: Final = frozenset({"args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema"})
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def to_camel_case(value: Any) -> Any:
    """The same value with keys as the service writes them.

    >>> to_camel_case({"function_call": {"args": {"a_b": 1}}})
    {'functionCall': {'args': {'a_b': 1}}}
    """
    if isinstance(value, dict):
        return {_camel(key): item if key in _FOREIGN else to_camel_case(item) for key, item in value.items()}
    return [to_camel_case(item) for item in value] if isinstance(value, list) else value


def to_snake_case(value: Any) -> Any:
    """The same value with keys as the SDKs write them."""
    if isinstance(value, dict):
        return {_snake(key): item if key in _FOREIGN else to_snake_case(item) for key, item in value.items()}
    return [to_snake_case(item) for item in value] if isinstance(value, list) else value


def detect_spelling(raw: JsonDict) -> str | None:
    """``snake`` if all keys are written so, else None."""
    return "snake" if to_camel_case(raw) != raw and to_snake_case(to_camel_case(raw)) == raw else None


def respell(encoded: Any, spelling: object) -> Any:
    """The encoded value in the detected spelling."""
    return to_snake_case(encoded) if spelling == "snake" else encoded


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest) if first else key


def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)
