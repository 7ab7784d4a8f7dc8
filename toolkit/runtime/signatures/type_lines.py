"""Classes and aliases, each as one line of Python."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Final

_OPTIONAL: Final = "NotRequired["


def class_line(name: str, fields: Mapping[str, str], *, is_dict: bool = False) -> str:
    """A class with typed attributes, or a typed dict.

    >>> class_line("Point", {"x": "int", "y": "int"})
    'class Point: x: int; y: int'
    >>> class_line("Args", {"x": "NotRequired[int]", "y": "NotRequired[list[int]]"}, is_dict=True)
    'class Args(TypedDict, total=False): x: int; y: list[int]'
    """
    if is_dict and not all(key.isidentifier() and not keyword.iskeyword(key) for key in fields):
        rows = ", ".join(f"{key!r}: {text}" for key, text in fields.items())
        return f"{name} = TypedDict({name!r}, {{{rows}}})"
    bases = "(TypedDict)" if is_dict else ""
    if is_dict and fields and all(text.startswith(_OPTIONAL) for text in fields.values()):
        bases = "(TypedDict, total=False)"
        fields = {key: text.removeprefix(_OPTIONAL).removesuffix("]") for key, text in fields.items()}
    return f"class {name}{bases}: {'; '.join(f'{key}: {text}' for key, text in fields.items()) or 'pass'}"


def alias_line(name: str, text: str) -> str:
    return f"{name}: TypeAlias = {text}"
