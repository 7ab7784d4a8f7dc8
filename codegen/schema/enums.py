"""``enum`` and ``const``: literals where Python has them, types elsewhere."""

from __future__ import annotations

from toolkit.codegen.schema.report import Loss, Notes
from toolkit.jsonschema.keywords import ASSERTIONS, Schema
from toolkit.jsonschema.types import types_of
from toolkit.jsonschema.values import has_type, json_key, json_type, same_json


def flat_enum(schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The flat node of a schema that lists its values."""
    listed = schema.get("enum", [schema.get("const")])
    # Only what is in the file has a pointer.
    listing = "enum" if "enum" in schema else "const"
    if not isinstance(listed, list):
        return notes.problem("'enum' must be a list of values", f"{pointer}/enum")
    if any(word in ASSERTIONS and word not in ("enum", "const", "type") for word in schema):
        notes.enforce("enum", pointer)
    values = list({json_key(value): value for value in reversed(listed)}.values())[::-1]
    if "const" in schema:
        values = [value for value in values if same_json(value, schema["const"])]
    types = types_of(schema)
    fitting = [value for value in values if types is None or any(has_type(value, one) for one in types)]
    if not fitting:
        in_enum = "no value is valid: 'enum' is empty, or 'type' excludes all of its values"
        in_const = "no value is valid: 'type' excludes the value of 'const'"
        notes.finding(in_enum if listing == "enum" else in_const, f"{pointer}/{listing}")
        notes.enforce("enum", pointer)
    elif len(fitting) < len(values):
        notes.finding("'enum' has values that 'type' excludes", f"{pointer}/enum")
    # Where none fits, the listed ones are shown, and refused.
    return _literals(fitting or values, pointer, notes)


def _literals(values: list[object], pointer: str, notes: Notes) -> Schema:
    plain = [int(value) if isinstance(value, float) else value for value in values if _is_plain(value)]
    kinds = dict.fromkeys(json_type(value) for value in values if not _is_plain(value))
    if kinds or not values:
        notes.enforce("enum", pointer)
    branches: list[Schema] = [*([{"enum": plain}] if plain else []), *({"type": kind} for kind in kinds)]
    if len(branches) > 1:
        return {"anyOf": branches}
    return branches[0] if branches else notes.lose(Loss.NEVER_VALID, pointer, is_reported=True)


def _is_plain(value: object) -> bool:
    """Whether a value can be in a ``Literal``."""
    return not isinstance(value, dict | list) and json_type(value) != "number"
