"""OpenAPI's styles for values in paths, queries, headers and cookies; each value is percent-encoded.

Only this module writes separators: whatever a value contains, it stays one value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from toolkit.errors import InvalidArguments

Encode: TypeAlias = Callable[[str], str]
Pairs: TypeAlias = list[tuple[str, str]]

_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
# Reserved characters that a query may contain as they are; without those that end a value or start another one.
_RESERVED: Final = "!$'()*,/:;?@[]"


def percent_encode(text: str) -> str:
    """Everything but letters, digits and ``-._~`` as percent escapes.

    >>> percent_encode("../a b")
    '..%2Fa%20b'
    """
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidArguments("text must not contain lone surrogates") from None


def percent_encode_except_reserved(text: str) -> str:
    """As ``percent_encode``, for a parameter with ``allowReserved``.

    >>> percent_encode_except_reserved("a/b?c&d")
    'a/b?c%26d'
    """
    percent_encode(text)  # refuses lone surrogates
    return quote(text, safe=_RESERVED)


def to_text(value: object) -> str:
    """One value as text: a string as it is, an empty text for null, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else to_json(value)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def query_pairs(name: str, value: object, style: str, explode: bool, encode: Encode = percent_encode) -> Pairs:
    """The encoded pairs of a query for one parameter; none for null and for an empty list or object.

    >>> query_pairs("id", [3, 4], "form", True)
    [('id', '3'), ('id', '4')]
    """
    if style == "deepObject":
        return list(_deep_pairs(percent_encode(name), value, encode))
    if not isinstance(value, dict | list):
        return [] if value is None else [(percent_encode(name), encode(to_text(value)))]
    if explode:
        exploded = value.items() if isinstance(value, dict) else ((name, item) for item in value)
        return [(percent_encode(key), encode(to_text(item))) for key, item in exploded]
    listed = _encode_items(value, encode)
    return [(percent_encode(name), _DELIMITERS[style].join(listed))] if listed else []


def _deep_pairs(name: str, value: object, encode: Encode) -> Iterator[tuple[str, str]]:
    """``name[key]=value``, as deep as the value goes; the standard defines one level, services use more."""
    if isinstance(value, dict):
        inner: list[tuple[str, Any]] = list(value.items())
    elif isinstance(value, list):
        inner = [(str(index), item) for index, item in enumerate(value)]
    else:
        if value is not None:
            yield name, encode(to_text(value))
        return
    for key, item in inner:
        yield from _deep_pairs(f"{name}%5B{percent_encode(key)}%5D", item, encode)


def path_text(name: str, value: object, style: str, explode: bool) -> str:
    """One parameter as encoded text in a path.

    >>> path_text("id", [3, 4], "matrix", True)
    ';id=3;id=4'
    """
    if style == "simple":
        return simple_text(value, explode, percent_encode)
    lead = "." if style == "label" else ";"
    if not isinstance(value, dict | list):
        text = percent_encode(to_text(value))
        return (
            f".{text}"
            if style == "label"
            else f";{percent_encode(name)}={text}"
            if text
            else f";{percent_encode(name)}"
        )
    if explode:
        pairs = query_pairs(name, value, "form", True)
        named = isinstance(value, dict) or style == "matrix"
        return "".join(f"{lead}{key}={item}" if named else f"{lead}{item}" for key, item in pairs)
    listed = ",".join(_encode_items(value, percent_encode))
    return f".{listed}" if style == "label" else f";{percent_encode(name)}={listed}"


def simple_text(value: object, explode: bool, encode: Encode) -> str:
    """Values separated by commas, the default style of paths and headers.

    >>> simple_text({"a": 1, "b": True}, True, percent_encode)
    'a=1,b=true'
    """
    if isinstance(value, dict) and explode:
        return ",".join(f"{encode(str(key))}={encode(to_text(item))}" for key, item in value.items())
    return ",".join(_encode_items(value, encode)) if isinstance(value, dict | list) else encode(to_text(value))


def _encode_items(value: Mapping[str, object] | list[object], encode: Encode) -> list[str]:
    items = [part for pair in value.items() for part in pair] if isinstance(value, Mapping) else value
    return [encode(to_text(item)) for item in items]
