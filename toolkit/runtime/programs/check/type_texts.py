"""Types as the checkers print them, made plain and alike."""

from __future__ import annotations

import ast
import re
from typing import Final

_LITERAL: Final = re.compile(r"Literal\[((?:[^\[\]]|\[\])*)\]")
_COROUTINE: Final = re.compile(r"Coroutine(?:Type)?\b")
_MAX_TYPE: Final = 120


def plain_type(text: str) -> str:
    """A type without literal values: ``Literal[1]`` is an ``int``.

    >>> plain_type('Literal["a"] | None'), plain_type("CoroutineType[Any, Any, ReadFileOutput]")
    ('str | None', 'coroutine')
    """
    text = text.removesuffix("*").replace("Unknown", "Any").replace("NoneType", "None").replace("LiteralString", "str")
    if _COROUTINE.match(text):
        return "coroutine"
    text = _LITERAL.sub(lambda found: " | ".join(dict.fromkeys(_kinds(found[1]))), text)
    text = {"_Inputs": "inputs", "_Tools": "tools", "_AsyncTools": "atools"}.get(text, text)
    return text if len(text) <= _MAX_TYPE else f"{text[:_MAX_TYPE]}..."


def base_type(text: str) -> str:
    """``list[str]`` is a ``list``."""
    return plain_type(text).partition("[")[0]


def choices(text: str) -> list[str]:
    """The values of a type that is only literals, and perhaps None, as Python writes them; empty for other types.

    >>> choices("Literal['auto', 'exact'] | None"), choices("str")
    (["'auto'", "'exact'", 'None'], [])
    """
    found = re.fullmatch(r"Literal\[(.*)\]( \| None)?", text)
    if not found:
        return []
    return [*(repr(value) for value in _values(found[1])), *(["None"] if found[2] else [])]


def may_be_none(text: str) -> bool:
    return bool(re.search(r"\bNone\b", re.sub(r"\[.*\]", "", text)))


def is_coroutine(text: str) -> bool:
    return bool(_COROUTINE.match(text)) or text == "coroutine"


def _values(text: str) -> list[object]:
    try:
        values = ast.literal_eval(f"[{text}]")
    except (ValueError, SyntaxError):  # a member of an enum
        return []
    return list(values)


def _kinds(text: str) -> list[str]:
    return [type(value).__name__ for value in _values(text)] or [text]
