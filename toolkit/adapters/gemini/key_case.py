"""Keys are written in two ways: ``functionCall`` by the service, ``function_call`` by its SDKs. Decoders read the first,
and what came in the second goes back in it."""

from __future__ import annotations

import re
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict

# Below these keys stands somebody's own JSON, whose keys are not ours to spell.
_FOREIGN: Final = frozenset({"args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema"})
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def camel(value: Any) -> Any:
    """The same with keys as the service writes them.

    >>> camel({"function_call": {"args": {"a_b": 1}}})
    {'functionCall': {'args': {'a_b': 1}}}
    """
    if isinstance(value, dict):
        return {_camel(key): item if key in _FOREIGN else camel(item) for key, item in value.items()}
    return [camel(item) for item in value] if isinstance(value, list) else value


def snake(value: Any) -> Any:
    """The same with keys as the SDKs write them."""
    if isinstance(value, dict):
        return {_snake(key): item if key in _FOREIGN else snake(item) for key, item in value.items()}
    return [snake(item) for item in value] if isinstance(value, list) else value


def spelling_of(raw: JsonDict) -> str | None:
    """``snake`` where that is how all of it is written."""
    return "snake" if camel(raw) != raw and snake(camel(raw)) == raw else None


def respelled(made: Any, spelling: object) -> Any:
    return snake(made) if spelling == "snake" else made


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest) if first else key


def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)
