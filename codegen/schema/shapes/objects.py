"""Objects: classes and maps, their properties and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.codegen.package import python_names
from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.codegen.schema.objects import (
    DECLARED_BY_SOME,
    report_open_patterns,
    required_names,
    schema_of_extra_properties,
)
from toolkit.codegen.schema.report import Loss
from toolkit.codegen.schema.shapes.flat_node import bare
from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.pointer import escape_key

if TYPE_CHECKING:
    from toolkit.codegen.schema.shapes.flattener import Flattener


def shape_object(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    """A map stays in place; an object with properties, or a closed one, becomes a class of its own."""
    closed = schema_of_extra_properties(schema) is False
    if not schema.get("properties") and not schema.get("required") and not closed:
        return build_object(flattener, schema, pointer, name)
    name = flattener.classes[pointer] = flattener.claim_name(name, pointer)
    if isinstance(schema.get("title"), str):
        flattener.hints[name] = NameHint(titles=(schema["title"],))
    flattener.objects[name] = {"type": "object"}
    flattener.building.add(name)
    flattener.objects[name] = build_object(flattener, schema, pointer, name)
    flattener.building.discard(name)
    return {"$ref": f"#/$defs/{name}"}


def build_object(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    flat: Schema = {"type": "object"}
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return flattener.notes.problem("'properties' must be an object", f"{pointer}/properties")
    required = required_names(schema, properties, pointer, flattener.notes)
    # A name that is required and not declared may hold anything, but is still required.
    properties = {**properties, **{key: True for key in required if key not in properties}}
    if properties:
        flat["properties"] = {
            key: _flatten_property(flattener, value, f"{pointer}/properties/{escape_key(key)}", name, key)
            for key, value in properties.items()
        }
    flat["required"] = required
    report_open_patterns(schema, pointer, flattener.notes)
    extra = schema_of_extra_properties(schema)
    flat["additionalProperties"] = (
        extra
        if isinstance(extra, bool)
        else flatten_inner(flattener, extra, f"{pointer}/additionalProperties", f"{name}Value")
    )
    if isinstance(schema.get("description"), str):
        flat["description"] = schema["description"]
    return flat


def flatten_inner(flattener: Flattener, schema: object, pointer: str, name: str) -> Schema:
    """The schema of an item of an array, or of a value of a map."""
    judged = flattener.judged
    flat = flattener.flatten_node(schema, pointer, name, nested=True)
    flattener.judged = judged  # what is inside judges other values
    return bare(flat)


def _flatten_property(flattener: Flattener, schema: object, pointer: str, name: str, key: str) -> Schema:
    judged = flattener.judged
    flat = flattener.flatten_node(schema, pointer, name + python_names.camel(key))
    flattener.judged = judged
    if isinstance(schema, dict) and DECLARED_BY_SOME in schema:
        flattener.notes.lose(Loss.OTHER_BRANCHES, schema[DECLARED_BY_SOME], repr(key))
        flat[DECLARED_BY_SOME] = True
    return flat
