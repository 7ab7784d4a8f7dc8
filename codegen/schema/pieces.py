"""What the words of arrays and objects come to, whichever of them say it."""

from __future__ import annotations

from toolkit.codegen.schema.references import Schema
from toolkit.codegen.schema.report import Notes


def items_of(schema: Schema, pointer: str, notes: Notes) -> object | None:
    """The schema that every item of an array fits, whatever its place; None where none is known."""
    items, first = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):
        notes.enforce("items", pointer)
        first, items = items, schema.get("additionalItems")
    if not isinstance(first, list):
        return items
    if items is None or items is True:
        return None
    return {"anyOf": [*first, *([items] if items is not False else [])]} if first or items else items


def further(schema: Schema) -> object:
    """What further properties may hold: by their patterns, else as ``additionalProperties`` says."""
    extra, patterns = schema.get("additionalProperties", True), schema.get("patternProperties")
    if not isinstance(patterns, dict) or not patterns or extra is True:
        return extra
    return {"anyOf": [*patterns.values(), *([extra] if extra is not False else [])]}


def required_names(schema: Schema, properties: Schema, pointer: str, notes: Notes) -> list[str]:
    """The properties that must be there, declared or not."""
    names = schema.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        notes.problem("'required' must be a list of property names", f"{pointer}/required")
        return []
    for name in (name for name in names if name not in properties):
        notes.finding(f"'required' names {name!r}, which 'properties' does not declare", f"{pointer}/required")
        if schema.get("additionalProperties", True) is not True:
            notes.enforce("additionalProperties", pointer)
    return list(dict.fromkeys(names))
