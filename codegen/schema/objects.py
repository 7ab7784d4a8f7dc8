"""What the keywords of arrays and objects come to, whichever of them say it; and a union of objects as one object."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.codegen.schema.report import Notes
from toolkit.jsonschema.keywords import UNIONS, Schema
from toolkit.jsonschema.types import types_of


def takes_only_objects(schema: Schema) -> bool:
    """Whether a schema takes objects only, and no choice among them."""
    return types_of(schema) == ["object"] and not any(word in schema for word in (*UNIONS, "enum", "const"))


def schema_of_items(schema: Schema, pointer: str, notes: Notes) -> object | None:
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


def schema_of_extra_properties(schema: Schema) -> object:
    """What properties without a name of their own may hold: by their patterns, else by ``additionalProperties``."""
    extra, patterns = schema.get("additionalProperties", True), schema.get("patternProperties")
    if not isinstance(patterns, dict) or not patterns or extra is True:
        return extra
    return {"anyOf": [*patterns.values(), *([extra] if extra is not False else [])]}


def required_names(schema: Schema, properties: Schema, pointer: str, notes: Notes) -> list[str]:
    """The required properties, declared or not."""
    names = schema.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        notes.problem("'required' must be a list of property names", f"{pointer}/required")
        return []
    for name in (name for name in names if name not in properties):
        notes.finding(f"'required' names {name!r}, which 'properties' does not declare", f"{pointer}/required")
        if schema.get("additionalProperties", True) is not True:
            notes.enforce("additionalProperties", pointer)
    return list(dict.fromkeys(names))


def loosen(base: Schema, branches: Sequence[Schema]) -> Schema:
    """One object that takes what ``base`` with any of the branches takes; the union itself is judged at run time.

    The arguments of a tool, which are given as keywords, must be one class.

    >>> loosen({"type": "object"}, [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["a"]}])
    {'type': 'object', 'properties': {'a': {}}, 'required': ['a']}
    """
    properties = dict(_properties(base))
    for name in dict.fromkeys(name for branch in branches for name in _properties(branch) if name not in properties):
        schemas = [_properties(branch)[name] for branch in branches if name in _properties(branch)]
        # A branch that does not name it and is open takes anything there.
        free = any(name not in _properties(branch) and not _is_closed(branch) for branch in branches)
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        properties[name] = {} if free else distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    always = (
        [name for name in _required(branches[0]) if all(name in _required(b) for b in branches)] if branches else []
    )
    whole = {**base, "type": "object"}
    if properties:
        whole["properties"] = properties
    if always or "required" in base:
        whole["required"] = list(dict.fromkeys([*_required(base), *always]))
    if "additionalProperties" not in base and branches and all(map(_is_closed, branches)):
        whole["additionalProperties"] = False
    return whole


def _is_closed(branch: Schema) -> bool:
    return branch.get("additionalProperties", True) is False and not branch.get("patternProperties")


def _properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Schema) -> list[str]:
    names = schema.get("required", [])
    return names if isinstance(names, list) else []
