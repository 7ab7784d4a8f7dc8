"""A union of objects that must be one class: the arguments of a tool, say, which are given as keywords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.codegen.schema.references import Schema


def loosened(base: Schema, branches: Sequence[Schema]) -> Schema:
    """One object that takes what ``base`` with any of the branches takes; the union itself is judged at run time.

    >>> loosened({"type": "object"}, [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["a"]}])
    {'type': 'object', 'properties': {'a': {}}, 'required': ['a']}
    """
    properties: dict[str, Any] = dict(base.get("properties", {}))
    names = dict.fromkeys(name for branch in branches for name in branch.get("properties", {}))
    for name in (name for name in names if name not in properties):
        schemas = [branch["properties"][name] for branch in branches if name in branch.get("properties", {})]
        # A branch that does not name it and is open takes anything there.
        free = any(name not in branch.get("properties", {}) and not _is_closed(branch) for branch in branches)
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


def _required(schema: Schema) -> list[str]:
    names = schema.get("required", [])
    return names if isinstance(names, list) else []
