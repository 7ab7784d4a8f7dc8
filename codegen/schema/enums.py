"""``enum`` and ``const``: literals where Python has them, the kind of value elsewhere."""

from __future__ import annotations

from toolkit.codegen.schema.accepts import json_type
from toolkit.codegen.schema.keywords import ASSERTIONS
from toolkit.codegen.schema.kinds import is_one_of, kinds_of
from toolkit.codegen.schema.references import Schema
from toolkit.codegen.schema.report import Notes
from toolkit.models.exact import json_key, same_json


def flat_enum(schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The flat node of a schema that lists its values."""
    listed = schema.get("enum", [schema.get("const")])
    # What is not in the file cannot be pointed at.
    listing = "enum" if "enum" in schema else "const"
    if not isinstance(listed, list):
        return notes.problem("'enum' must be a list of values", f"{pointer}/enum")
    if any(word in ASSERTIONS and word not in ("enum", "const", "type") for word in schema):
        notes.enforce("enum", pointer)
    values = list({json_key(value): value for value in reversed(listed)}.values())[::-1]
    if "const" in schema:
        values = [value for value in values if same_json(value, schema["const"])]
    kinds = kinds_of(schema)
    fitting = [value for value in values if kinds is None or is_one_of(value, kinds)]
    if not fitting:
        mistake = "no value fits: 'enum' is empty, or lists only what 'type' refuses"
        words = mistake if listing == "enum" else "no value fits: 'type' refuses 'const'"
        notes.finding(words, f"{pointer}/{listing}")
        notes.enforce("enum", pointer)
    elif len(fitting) < len(values):
        notes.finding("'enum' lists values that 'type' refuses", f"{pointer}/enum")
    # Where none fits, the listed ones are what was meant: they are shown, and refused.
    return _literals(fitting or values, pointer, notes)


def _literals(values: list[object], pointer: str, notes: Notes) -> Schema:
    plain = [int(value) if isinstance(value, float) else value for value in values if _is_plain(value)]
    kinds = dict.fromkeys(json_type(value) for value in values if not _is_plain(value))
    if kinds or not values:
        notes.enforce("enum", pointer)
    branches: list[Schema] = [*([{"enum": plain}] if plain else []), *({"type": kind} for kind in kinds)]
    if len(branches) > 1:
        return {"anyOf": branches}
    return branches[0] if branches else {}


def _is_plain(value: object) -> bool:
    """Whether a value can stand in a ``Literal``."""
    return not isinstance(value, dict | list) and json_type(value) != "number"
