"""How OpenAPI writes values into paths, queries, headers and cookies: its styles, each value percent-encoded.

What separates values is written by us and by nobody else: whatever stands in a value, it stays one value.
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
# Reserved characters that a query may hold as they are; those that would end a value or begin another one are not here.
_RESERVED: Final = "!$'()*,/:;?@[]"


def encoded(text: str) -> str:
    """Everything but letters, digits and ``-._~`` as percent escapes.

    >>> encoded("../a b")
    '..%2Fa%20b'
    """
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidArguments("a text must not hold half characters") from None


def encoded_but_reserved(text: str) -> str:
    """As ``encoded``, for a parameter that may hold reserved characters.

    >>> encoded_but_reserved("a/b?c&d")
    'a/b?c%26d'
    """
    encoded(text)
    return quote(text, safe=_RESERVED)


def text_of(value: object) -> str:
    """One value as text: as JSON writes it, text without its quotes, nothing for null."""
    if isinstance(value, str):
        return value
    return "" if value is None else as_json(value)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def in_query(name: str, value: object, style: str, explode: bool, encode: Encode = encoded) -> Pairs:
    """The pairs of a query that stand for one parameter, encoded; none for null and for what is empty.

    >>> in_query("id", [3, 4], "form", True)
    [('id', '3'), ('id', '4')]
    """
    if style == "deepObject":
        return list(_deep(encoded(name), value, encode))
    if not isinstance(value, dict | list):
        return [] if value is None else [(encoded(name), encode(text_of(value)))]
    if explode:
        exploded = value.items() if isinstance(value, dict) else ((name, item) for item in value)
        return [(encoded(key), encode(text_of(item))) for key, item in exploded]
    listed = _listed(value, encode)
    return [(encoded(name), _DELIMITERS[style].join(listed))] if listed else []


def _deep(name: str, value: object, encode: Encode) -> Iterator[tuple[str, str]]:
    """``name[key]=value``, as deep as the value goes; the standard stops after one step, services do not."""
    if isinstance(value, dict):
        inner: list[tuple[str, Any]] = list(value.items())
    elif isinstance(value, list):
        inner = [(str(index), item) for index, item in enumerate(value)]
    else:
        if value is not None:
            yield name, encode(text_of(value))
        return
    for key, item in inner:
        yield from _deep(f"{name}%5B{encoded(key)}%5D", item, encode)


def in_path(name: str, value: object, style: str, explode: bool) -> str:
    """What stands for one parameter in a path, encoded.

    >>> in_path("id", [3, 4], "matrix", True)
    ';id=3;id=4'
    """
    if style == "simple":
        return simple(value, explode, encoded)
    lead = "." if style == "label" else ";"
    if not isinstance(value, dict | list):
        text = encoded(text_of(value))
        return f".{text}" if style == "label" else f";{encoded(name)}={text}" if text else f";{encoded(name)}"
    if explode:
        pairs = in_query(name, value, "form", True)
        named = isinstance(value, dict) or style == "matrix"
        return "".join(f"{lead}{key}={item}" if named else f"{lead}{item}" for key, item in pairs)
    listed = ",".join(_listed(value, encoded))
    return f".{listed}" if style == "label" else f";{encoded(name)}={listed}"


def simple(value: object, explode: bool, encode: Encode) -> str:
    """Values with commas between them: how paths and headers are usually written.

    >>> simple({"a": 1, "b": True}, True, encoded)
    'a=1,b=true'
    """
    if isinstance(value, dict) and explode:
        return ",".join(f"{encode(str(key))}={encode(text_of(item))}" for key, item in value.items())
    return ",".join(_listed(value, encode)) if isinstance(value, dict | list) else encode(text_of(value))


def _listed(value: Mapping[str, object] | list[object], encode: Encode) -> list[str]:
    items = [part for pair in value.items() for part in pair] if isinstance(value, Mapping) else value
    return [encode(text_of(item)) for item in items]
