"""What the keywords of arrays and objects come to, whichever of them say it; and a union of objects as one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.codegen.schema.report import Loss, Notes
from toolkit.jsonschema.keywords import UNIONS, Schema, has_assertions
from toolkit.jsonschema.pointer import escape_key
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
        if any(map(says_something, first)):
            notes.lose(Loss.OPEN_TUPLE, pointer)
        return None
    return {"anyOf": [*first, *([items] if items is not False else [])]} if first or items else items


def report_open_patterns(schema: Schema, pointer: str, notes: Notes) -> None:
    """Notes that patterns say something about properties of which the type says nothing."""
    patterns = schema.get("patternProperties")
    saying = any(map(says_something, patterns.values())) if isinstance(patterns, dict) else False
    if saying and schema.get("additionalProperties", True) is True:
        notes.lose(Loss.OPEN_PATTERNS, pointer)


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
        notes.finding(
            f"'required' names {name!r}, which 'properties' does not declare; declare it, or remove it",
            f"{pointer}/required",
        )
        if schema.get("additionalProperties", True) is not True:
            notes.enforce("additionalProperties", pointer)
    return list(dict.fromkeys(names))


DECLARED_BY_SOME: Final = "x-declared-by-some"
"""Marks a property of a merged union: its type is that of the branches that declare it; others accept any value there.
Its value is the pointer of the first declaration."""


def loosen(base: Schema, branches: Sequence[Schema], places: Sequence[str]) -> Schema:
    """One object that takes what ``base`` with any of the branches takes; the union itself is judged at run time.

    The arguments of a tool, which are given as keywords, must be one class.

    A property that an open branch does not declare may hold anything there; its type is what the others declare.

    :param places: the pointers of the branches.

    >>> branches = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["a"]}]
    >>> loosen({"type": "object"}, branches, ["/oneOf/0", "/oneOf/1"])["properties"]
    {'a': {'type': 'string', 'x-declared-by-some': '/oneOf/0/properties/a'}}
    """
    properties = dict(_properties(base))
    for name in dict.fromkeys(name for branch in branches for name in _properties(branch)):
        if name in properties and says_something(properties[name]):
            continue
        schemas = [_properties(branch)[name] for branch in branches if name in _properties(branch)]
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        declared = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        is_open = any(name not in _properties(branch) and not _is_closed(branch) for branch in branches)
        if is_open and all(map(says_something, distinct)):
            first = next(at for at, branch in zip(places, branches, strict=True) if name in _properties(branch))
            declared = {**declared, DECLARED_BY_SOME: f"{first}/properties/{escape_key(name)}"}
        elif is_open:
            declared = {}
        properties[name] = {**_as_dict(properties.get(name)), **_as_dict(declared)}
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


def says_something(schema: object) -> bool:
    """Whether a schema can refuse any value."""
    return schema is False or isinstance(schema, dict) and has_assertions(schema)


def _as_dict(schema: object) -> Schema:
    return schema if isinstance(schema, dict) else {} if schema in (True, None) else {"not": {}}


def _is_closed(branch: Schema) -> bool:
    return branch.get("additionalProperties", True) is False and not branch.get("patternProperties")


def _properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Schema) -> list[str]:
    names = schema.get("required", [])
    return names if isinstance(names, list) else []
