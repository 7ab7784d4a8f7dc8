"""The types of a program's inputs, from their values."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import BaseModel

from toolkit.errors import SetupError
from toolkit.runtime.signatures.python_types import TypeTexts

_SCALARS: Final = {str: "str", bool: "bool", int: "int", float: "float", type(None): "None"}
_MAX_DEPTH: Final = 8
"""Below this many lists and maps, a value is ``Any``."""


class InputTypes(NamedTuple):
    """The type of each input, and the classes that these types name."""

    types: dict[str, str]
    classes: tuple[str, ...]


def describe_inputs(inputs: Mapping[str, object]) -> InputTypes:
    """
    >>> describe_inputs({"paths": ["a.py"], "limits": {"lines": 3, "size": 1.5}}).types
    {'paths': 'list[str]', 'limits': 'dict[str, float]'}
    """
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise SetupError(f"the input {name!r} needs another name: a program reads it as `inputs.<name>`")
    models = TypeTexts("")
    types = {name: _type_of(value, models, 0) for name, value in inputs.items()}
    return InputTypes(types, models.lines)


def _type_of(value: object, models: TypeTexts, depth: int) -> str:
    if type(value) in _SCALARS:
        return _SCALARS[type(value)]
    if isinstance(value, BaseModel):
        return models.write(type(value))
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return f"list[{_common([_type_of(item, models, depth + 1) for item in value])}]"
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return f"dict[str, {_common([_type_of(item, models, depth + 1) for item in value.values()])}]"
    return "Any"


def _common(types: list[str]) -> str:
    """One type for values of all these types; ``Any`` if they have little in common."""
    found = set(types) - {"None"}
    if found == {"int", "float"}:
        found = {"float"}
    if len(found) != 1:
        return "Any"
    optional = " | None" if "None" in types and found != {"Any"} else ""
    return f"{found.pop()}{optional}"
