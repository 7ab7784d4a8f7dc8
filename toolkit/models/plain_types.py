"""Which fields accept every value of one Python type, so that looking at the type decides."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

_EVERY_TEXT: Final = {"type": "str", "strict": True, "min_length": 0}
_EVERY_BOOL: Final = {"type": "bool", "strict": True}
_EVERY_INT: Final = {"type": "int", "strict": True}


def plain_type(schema: Any) -> type | None:
    """The type of a field that accepts every int, bool or text of exactly that type; None for a field that looks closer.

    Of a text only ASCII is known to be accepted: another one may hold lone surrogates.

    >>> from toolkit.models.base import ToolModel
    >>> from typing import Literal
    >>> class Page(ToolModel):
    ...     number: int
    ...     kind: Literal["a", "b"]
    >>> fields = Page.__pydantic_core_schema__["schema"]["fields"]
    >>> plain_type(fields["number"]["schema"]), plain_type(fields["kind"]["schema"])
    (<class 'int'>, None)
    """
    known = {key: value for key, value in schema.items() if key != "metadata"}
    if known == _EVERY_TEXT:
        return str
    if known == _EVERY_BOOL:
        return bool
    # As `exact` writes an integer without limits: an int, else a float without a fraction.
    is_integer = schema["type"] == "custom-error" and schema["custom_error_type"] == "int_type"
    return int if is_integer and schema["schema"]["choices"][0] == _EVERY_INT else None


def plain_types(model: type[BaseModel], names: frozenset[str]) -> tuple[tuple[str, type], ...] | None:
    """The types of these fields, by their Python names; None if one of them is not plain."""
    schema: Any = model.__pydantic_core_schema__
    found = [(name, plain_type(schema["schema"]["fields"][name]["schema"])) for name in sorted(names)]
    return tuple((name, kind) for name, kind in found if kind is not None) if all(kind for _, kind in found) else None
