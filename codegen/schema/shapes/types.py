"""``type``: one type, or a union of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolkit.codegen.package import python_names
from toolkit.codegen.schema.limits import typed_limits
from toolkit.codegen.schema.objects import schema_of_items
from toolkit.codegen.schema.report import Loss
from toolkit.codegen.schema.shapes.flat_node import carries_limits
from toolkit.codegen.schema.shapes.objects import flatten_inner, shape_object
from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.types import TYPES, types_of, unknown_type

if TYPE_CHECKING:
    from toolkit.codegen.schema.shapes.flattener import Flattener

FORMATTED: Final = ("string", "integer", "number")
"""The types whose ``format`` is kept, for docstrings and for rich types."""


def shape_types(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    types = types_of(schema)
    if types is None or any(one not in TYPES for one in types):
        return flattener.notes.problem(unknown_type(types or ()), f"{pointer}/type")
    if not types:
        flattener.notes.finding("no value is valid: no type is left", pointer)
        flattener.notes.enforce("type", pointer)
        return flattener.notes.lose(Loss.NEVER_VALID, pointer, is_reported=True)
    types = [one for one in dict.fromkeys(types) if not (one == "integer" and "number" in types)]
    flattener.types[pointer] = types
    several = sum(one != "null" for one in types) > 1
    flat = [
        _shape_type(
            flattener, one, schema, pointer, name + python_names.camel(one) if several else name, nested=len(types) > 1
        )
        for one in types
    ]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _shape_type(flattener: Flattener, one: str, schema: Schema, pointer: str, name: str, *, nested: bool) -> Schema:
    if one == "object":
        return shape_object(flattener, schema, pointer, name)
    flat: Schema = {"type": one, **typed_limits(one, schema, pointer, flattener.notes)}
    if one in FORMATTED and isinstance(schema.get("format"), str):
        flat["format"] = schema["format"]
    items = schema_of_items(schema, pointer, flattener.notes) if one == "array" else None
    if items is not None:
        flat["items"] = flatten_inner(flattener, items, f"{pointer}/items", f"{name}Item")
    return flattener.add_alias(flat, pointer, name) if nested and carries_limits(flat) else flat
