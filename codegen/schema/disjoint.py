"""Whether two branches of a union can accept the same value, as far as types and constants show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolkit.codegen.package.python_names import field_names
from toolkit.codegen.schema.defaults import Lookup
from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.types import TYPES
from toolkit.jsonschema.values import are_disjoint, json_type


def exclude_each_other(branches: list[Schema], lookup: Lookup) -> bool:
    """Whether no value can be accepted by two of the branches, which are flat; ``lookup`` finds their references."""
    return all(_excludes(one, other, lookup) for index, one in enumerate(branches) for other in branches[:index])


def find_tag(branches: list[Schema], objects: Mapping[str, Schema]) -> str | None:
    """The property by which pydantic can choose among classes: required text, of one value that no other class has."""
    nodes = [objects.get(branch.get("$ref", "").rpartition("/")[2]) for branch in branches]
    constants = [_tags(node) if node is not None else {} for node in nodes]
    if len(constants) < 2:
        return None
    for name in constants[0]:
        values = [value for found in constants for value in found.get(name, ())]
        if all(name in found for found in constants) and len(set(values)) == len(values):
            return name
    return None


def _tags(node: Schema) -> dict[str, list[object]]:
    names = field_names(node.get("properties", {}))
    constants = _constants(node, lambda ref: None)
    return {
        name: values
        for name, values in constants.items()
        # One value each: datamodel-code-generator would replace a list of values by one of its own.
        if names[name] == name and len(values) == 1 and isinstance(values[0], str)
    }


def _excludes(one: Schema, other: Schema, lookup: Lookup) -> bool:
    if set(_types(one, lookup)).isdisjoint(_types(other, lookup)):
        return True
    if "enum" in one and "enum" in other:
        return are_disjoint(one["enum"], other["enum"])
    mine, theirs = _constants(one, lookup), _constants(other, lookup)
    return any(are_disjoint(mine[key], theirs[key]) for key in mine.keys() & theirs.keys())


def _types(flat: Schema, lookup: Lookup) -> Iterator[str]:
    node = (lookup(flat["$ref"]) or {}) if "$ref" in flat else flat
    if "enum" in node:
        yield from ("number" if json_type(v) == "integer" else json_type(v) for v in node["enum"])
    elif "anyOf" in node:
        for branch in node["anyOf"]:
            yield from _types(branch, lookup)
    elif "type" in node:
        yield "number" if node["type"] == "integer" else node["type"]
    else:
        yield from TYPES


def _constants(flat: Schema, lookup: Lookup) -> dict[str, list[object]]:
    node = (lookup(flat["$ref"]) or {}) if "$ref" in flat else flat
    properties = node.get("properties", {})
    return {key: properties[key]["enum"] for key in node.get("required", ()) if "enum" in properties.get(key, {})}
