"""Argument text of a call, as models write it."""

from __future__ import annotations

import json
from typing import Any

from toolkit.errors import InvalidArguments
from toolkit.runtime.arguments import SHORT_TEXT, parse_arguments


def check_arguments(data: bytes) -> None:
    """A value or ``InvalidArguments``; the fast parser and the careful one agree; what was read can be written and read."""
    text = _as_text(data)
    value = _read(text)
    # White space at the end changes nothing, but the careful parser reads texts of this length.
    assert _same(value, _read(text + " " * SHORT_TEXT)), "two parsers, two values"
    # A number beyond floats is JSON, but infinity in Python, which has no JSON: the validator judges it.
    if not isinstance(value, InvalidArguments) and "inf" not in repr(value):
        assert _same(value, _read(json.dumps(value))), "what was read is written as something else"
        assert _same(value, json.loads(text)), "the standard library reads another value"


def _as_text(data: bytes) -> str:
    """Lone surrogates, too: some SDKs make them of what a model wrote."""
    try:
        return data.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _read(text: str) -> Any:
    try:
        return parse_arguments(text)
    except InvalidArguments as error:
        assert str(error).strip()
        return error


def _same(one: object, other: object) -> bool:
    if isinstance(one, InvalidArguments):
        return isinstance(other, InvalidArguments)
    return repr(one) == repr(other)
