"""Whether a flat schema accepts a value: enough to judge defaults and examples at generation time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.models.exact import is_multiple, same_json


def json_type(value: object) -> str:
    """The JSON Schema type of a Python value; whole numbers are integers, fractions are numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or isinstance(value, float) and value.is_integer():
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def accepts(flat: dict[str, Any], value: Any, lookup: Callable[[str], dict[str, Any] | None]) -> bool:
    """``flat`` is what ``schema.flatten`` makes; ``lookup`` finds its references (None: still being read, accepted)."""
    if "$ref" in flat:
        target = lookup(flat["$ref"])
        return target is None or accepts(target, value, lookup)
    if "enum" in flat:
        return any(same_json(value, wanted) for wanted in flat["enum"])
    if "anyOf" in flat:
        return any(accepts(branch, value, lookup) for branch in flat["anyOf"])
    if "type" not in flat:
        return True
    kind = json_type(value)
    if flat["type"] != kind and not (flat["type"] == "number" and kind == "integer"):
        return False
    if kind == "object":
        return _accepts_object(flat, value, lookup)
    if kind == "array":
        return _in_range(flat, len(value), "Items") and all(accepts(flat.get("items", {}), v, lookup) for v in value)
    if kind == "string":
        return _in_range(flat, len(value), "Length") and _matches(flat.get("pattern"), value)
    return kind not in ("integer", "number") or _in_limits(flat, value)


def settled(flat: dict[str, Any], value: Any, lookup: Callable[[str], dict[str, Any] | None]) -> Any:
    """An accepted value as the types of generated code have it: 2.0 is 2 where an integer stands."""
    node = branch_for(flat, value, lookup)
    if "enum" in node:
        return next(wanted for wanted in node["enum"] if same_json(value, wanted))
    if isinstance(value, list):
        return [settled(node.get("items", {}), item, lookup) for item in value]
    if isinstance(value, dict):
        return {key: settled(_of_property(node, key), item, lookup) for key, item in value.items()}
    return int(value) if isinstance(value, float) and node.get("type") == "integer" else value


def branch_for(
    flat: dict[str, Any], value: Any, lookup: Callable[[str], dict[str, Any] | None], *, through_refs: bool = True
) -> dict[str, Any]:
    """The branch of unions, and what references mean, that takes the value; without branches the node itself."""
    if "$ref" in flat and through_refs:
        return branch_for(lookup(flat["$ref"]) or {}, value, lookup)
    if "anyOf" in flat:
        fitting = next(branch for branch in flat["anyOf"] if accepts(branch, value, lookup))
        return branch_for(fitting, value, lookup, through_refs=through_refs)
    return flat


def _of_property(node: dict[str, Any], key: str) -> dict[str, Any]:
    found = node.get("properties", {}).get(key, node.get("additionalProperties"))
    return found if isinstance(found, dict) else {}


def _accepts_object(flat: dict[str, Any], value: dict[str, Any], lookup: Callable[[str], Any]) -> bool:
    properties, extra = flat.get("properties", {}), flat.get("additionalProperties", True)
    if any(name not in value for name in flat.get("required", ())):
        return False
    for name, item in value.items():
        schema = properties.get(name, extra)
        if schema is False or schema is not True and not accepts(schema, item, lookup):
            return False
    return True


def _in_range(flat: dict[str, Any], length: int, what: str) -> bool:
    least, most = flat.get(f"min{what}", 0), flat.get(f"max{what}", length)
    return bool(least <= length <= most)


def _in_limits(flat: dict[str, Any], value: float) -> bool:
    return (
        value >= flat.get("minimum", value)
        and value <= flat.get("maximum", value)
        and ("exclusiveMinimum" not in flat or value > flat["exclusiveMinimum"])
        and ("exclusiveMaximum" not in flat or value < flat["exclusiveMaximum"])
        and ("multipleOf" not in flat or is_multiple(value, flat["multipleOf"]))
    )


def _matches(pattern: str | None, value: str) -> bool:
    if pattern is None:
        return True
    # The engine the generated model will use: linear time, whatever the pattern.
    from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern)).validate_python(value)
    except (SchemaError, ValidationError):
        return False
    return True
