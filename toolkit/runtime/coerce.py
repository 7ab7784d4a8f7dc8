"""Repair of what models commonly get wrong in arguments; used only with ``ToolkitContext(coerce=True)``.

Three repairs, each only where the schema refuses the value as it is and accepts what it becomes: a number or boolean
written as text, JSON text where an object or array is wanted, null for an optional argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.errors import InvalidArguments
from toolkit.runtime.argument_text import parse_arguments


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: where, and what was done."""

    pointer: str
    what: str

    def as_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "what": self.what}


def repaired(arguments: dict[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """A mended copy of the arguments and the list of what was mended; the caller validates it again."""
    repairs: list[Repair] = []
    mended = _object(arguments, schema, schema, "", repairs)
    return mended, repairs


def _object(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str, repairs: list[Repair]
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    mended: dict[str, Any] = {}
    for key, item in value.items():
        place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}" if isinstance(key, str) else pointer
        known = _resolved(properties.get(key, schema.get("additionalProperties")), root)
        if known is None:
            mended[key] = item
        elif item is None and key in properties and key not in required and "null" not in _types(known, root):
            repairs.append(Repair(place, "null taken as left out"))
        else:
            mended[key] = _value(item, known, root, place, repairs)
    return mended


def _value(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str, repairs: list[Repair]) -> Any:
    wanted = _types(schema, root)
    if isinstance(value, str) and "string" not in wanted and not _is_enum_of_text(schema):
        value = _from_text(value, wanted, pointer, repairs)
    if isinstance(value, dict) and "object" in wanted:
        return _object(value, _branch(schema, "object", root), root, pointer, repairs)
    if isinstance(value, list) and "array" in wanted:
        items = _resolved(_branch(schema, "array", root).get("items"), root)
        if items is not None:
            return [_value(item, items, root, f"{pointer}/{index}", repairs) for index, item in enumerate(value)]
    return value


def _from_text(text: str, wanted: set[str], pointer: str, repairs: list[Repair]) -> Any:
    try:
        value = parse_arguments(text)
    except InvalidArguments:
        return text
    kind = _kind(value)
    if kind in wanted or kind == "integer" and "number" in wanted:
        repairs.append(Repair(pointer, f"text read as {kind}"))
        return value
    return text


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "null"


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema behind references; None where anything goes."""
    for _ in range(32):
        if not isinstance(schema, Mapping):
            return None
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        _, section, name = ref.split("/", 2)
        schema = root.get(section, {}).get(name)
    return None


def _types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return set(kind)
    if "enum" in schema or "const" in schema:
        return {_kind(value) for value in schema.get("enum", [schema.get("const")])}
    branches = [_resolved(branch, root) for word in ("anyOf", "oneOf") for branch in schema.get(word, ())]
    found: set[str] = set()
    for branch in branches:
        found |= {"string"} if branch is None else _types(branch, root)
    # Without any word on types everything is accepted as it is: nothing to repair.
    return found or {"string", "null"}


def _is_enum_of_text(schema: Mapping[str, Any]) -> bool:
    return any(isinstance(value, str) for value in schema.get("enum", ()))


def _branch(schema: Mapping[str, Any], kind: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a union that speaks of objects, or of arrays; the first one that does."""
    branches = [_resolved(branch, root) for word in ("anyOf", "oneOf") for branch in schema.get(word, ())]
    return next((branch for branch in branches if branch is not None and kind in _types(branch, root)), schema)
