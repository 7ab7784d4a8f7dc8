"""Defaults of a flat schema: whether it accepts them, and their form in generated code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.values import same_json
from toolkit.schema.accepts import Judge

MAX_STEPS: Final = 2_000_000
"""For one default; a lookup that counts steps as well ends sooner, with a mistake of the schema."""

Lookup: TypeAlias = Callable[[str], Schema | None]
"""What a reference of a flat schema leads to; None while that is still being read."""


def accepts(flat: Schema, value: Any, lookup: Lookup) -> bool:
    """Whether a flat schema accepts a value; what is still being read accepts anything."""
    return Judge(flat, lambda ref: lookup(ref) or {}, max_steps=MAX_STEPS).fits(value, flat)


def settle_default(flat: Schema, value: Any, lookup: Lookup) -> Any:
    """An accepted value as the types of generated code have it: 2.0 becomes 2 where an integer is declared."""
    node = branch_for(flat, value, lookup)
    if "enum" in node:
        return next(wanted for wanted in node["enum"] if same_json(value, wanted))
    if isinstance(value, list):
        return [settle_default(node.get("items", {}), item, lookup) for item in value]
    if isinstance(value, dict):
        return {key: settle_default(_property(node, key), item, lookup) for key, item in value.items()}
    return int(value) if isinstance(value, float) and node.get("type") == "integer" else value


def branch_for(flat: Schema, value: Any, lookup: Lookup, *, through_refs: bool = True) -> Schema:
    """The branch of unions, and what references mean, that takes the value; without branches the node itself."""
    if "$ref" in flat and through_refs:
        return branch_for(lookup(flat["$ref"]) or {}, value, lookup)
    if "anyOf" in flat:
        fitting = next(branch for branch in flat["anyOf"] if accepts(branch, value, lookup))
        return branch_for(fitting, value, lookup, through_refs=through_refs)
    return flat


def _property(node: Schema, key: str) -> Schema:
    found = node.get("properties", {}).get(key, node.get("additionalProperties"))
    return found if isinstance(found, dict) else {}
