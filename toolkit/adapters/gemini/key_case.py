"""The spellings of Gemini's JSON: keys are ``functionCall`` by the service and ``function_call`` by its SDKs; base64 is in
the standard alphabet or, by its SDKs, in the one for URLs.

Decoders read camel case and standard base64; what came in another spelling goes back in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from toolkit.adapters.media.blocks import standard_base64
from toolkit.adapters.plain_json import JsonDict

# The JSON below these keys belongs to tools and users; its keys are not respelled.
_FOREIGN: Final = frozenset({"args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema"})
_MEDIA: Final = frozenset({"inlineData", "inline_data"})
_FOR_URLS: Final = str.maketrans("+/", "-_")
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
    """The words ``snake``, if all keys are written so, and ``url``, if media are in base64 for URLs; None if neither."""
    is_snake = to_camel_case(raw) != raw and to_snake_case(to_camel_case(raw)) == raw
    words = [*(["snake"] if is_snake else []), *(["url"] if _respell_media(raw, standard_base64) != raw else [])]
    return " ".join(words) or None


def join_spellings(found: Iterable[str | None]) -> str | None:
    """The spelling of several parts."""
    words = {word for spelling in found if spelling for word in spelling.split()}
    return " ".join(sorted(words)) or None


def respell(encoded: Any, spelling: object) -> Any:
    """The encoded value in the detected spelling."""
    words = spelling.split() if isinstance(spelling, str) else ()
    if "url" in words:
        encoded = _respell_media(encoded, _url_base64)
    return to_snake_case(encoded) if "snake" in words else encoded


def _respell_media(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with the base64 of its media changed."""
    if isinstance(value, list):
        return [_respell_media(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {**item, "data": change(item["data"])}
        if key in _MEDIA and isinstance(item, dict) and isinstance(item.get("data"), str)
        else item
        if key in _FOREIGN
        else _respell_media(item, change)
        for key, item in value.items()
    }


def _url_base64(data: str) -> str:
    return data.translate(_FOR_URLS)


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest) if first else key


def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)
