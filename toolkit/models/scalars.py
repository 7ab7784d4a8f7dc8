"""Which models hold nothing but single values: what is known of them does not depend on what is inside of a field."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

_SINGLE: Final = frozenset({"str", "int", "bool", "none", "literal"})
_AROUND_ONE: Final = frozenset({"default", "nullable", "custom-error"})


def holds_scalars(model: type[BaseModel]) -> bool:
    """Whether every field is text, a finite number, a truth value or null.

    >>> from toolkit.models.base import ToolModel
    >>> class Page(ToolModel):
    ...     number: int
    >>> class Pages(ToolModel):
    ...     numbers: list[int]
    >>> holds_scalars(Page), holds_scalars(Pages)
    (True, False)
    """
    schema: Any = model.__pydantic_core_schema__
    if schema["type"] != "model" or schema["schema"]["type"] != "model-fields":
        return False
    return all(_is_scalar(field["schema"]) for field in schema["schema"]["fields"].values())


def _is_scalar(schema: Any) -> bool:
    kind = schema["type"]
    if kind in _AROUND_ONE:
        return _is_scalar(schema["schema"])
    if kind == "union":
        return all(_is_scalar(choice[0] if isinstance(choice, tuple) else choice) for choice in schema["choices"])
    if kind == "chain":  # the first step decides what the others get
        return _is_scalar(schema["steps"][0])
    return kind in _SINGLE or kind == "float" and schema.get("allow_inf_nan") is False
