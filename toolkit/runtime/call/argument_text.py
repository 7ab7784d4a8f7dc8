"""Reads the argument text that a model wrote: strict JSON that every parser reads the same way."""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from pydantic_core import from_json

from toolkit.errors import InvalidArguments

MAX_CHARACTERS: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 200
SHORT_TEXT: Final = 100_000
MANY_ARGUMENTS: Final = 1000
"""From so many arguments on, unknown ones are refused without the validator, which would make an error of each."""

_SPACED_COLONS: Final = (" :", "\t:", "\n:", "\r:")
# An unclosed string runs to the end, so that no input is scanned twice.
_BRACKET_OR_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{\]}]', re.DOTALL)


def is_plain(text: str, keys: int) -> bool:
    """Whether the text of a JSON object that has ``keys`` different keys has no key twice, no object inside, no NaN.

    Every key is followed by a colon. So as many colons as keys means that there is nothing else with a colon: no second
    key of the same name, and no object inside that could have one. If texts hold colons too, the quotation marks before
    those of the keys are counted; JSON allows white space between them, which is then left to the careful parser.
    """
    if text.count(":") != keys and (text.count('":') != keys or any(spaced in text for spaced in _SPACED_COLONS)):
        return False
    return "NaN" not in text and "Infinity" not in text


def is_long_but_flat(text: str) -> bool:
    """Whether a long text has few keys, as the arguments of a tool that writes a file: reading it makes few objects."""
    return len(text) <= MAX_CHARACTERS and text.count('":') < MANY_ARGUMENTS


def parse_arguments(text: object) -> Any:
    """Parses JSON text; refuses duplicate keys, NaN, trailing data, and text that is too deep or too long."""
    if not isinstance(text, str):
        raise InvalidArguments(f"the arguments must be JSON text, not {type(text).__name__}")
    try:
        value = from_json(text, allow_inf_nan=False) if len(text) < SHORT_TEXT else None
    except (ValueError, TypeError):
        # TypeError: lone surrogates
        value = None
    if type(value) is dict and is_plain(text, len(value)):
        return value
    return _parse_with_care(text)


def _parse_with_care(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise _json_error(f"longer than {MAX_CHARACTERS} characters")
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(text)
    import json

    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _json_error(f"{error.msg.removesuffix(' at')} at line {error.lineno} column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        # ValueError: an integer of thousands of digits
        raise _json_error(str(error).partition(";")[0] or "too deep") from None


def _json_error(why: str) -> InvalidArguments:
    return InvalidArguments(f"the arguments are not valid JSON: {why}. Send one JSON object.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _json_error(f"the key {twice[:100]!r} is duplicated")
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise _json_error(f"{word} is not a JSON number")


def _check_depth(text: str) -> None:
    depth = 0
    for token in _BRACKET_OR_TEXT.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _json_error(f"nested more than {MAX_DEPTH} levels deep")
        elif mark in "]}":
            depth -= 1
