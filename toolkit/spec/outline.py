"""A schema in a few lines for people: what a tool takes, what it gives."""

from __future__ import annotations

import json
from typing import Any, Final

# Schemas that name no type and yet mean one.
_IMPLIED: Final = (("properties", "object"), ("additionalProperties", "object"), ("items", "array"))


def outline(schema: dict[str, Any] | None) -> list[str]:
    """One line a property: name, whether it is needed, type, default, description; the type of what has none."""
    if schema is None:
        return ["text"]
    schema = _referred(schema, schema)
    if "properties" not in schema:
        return ["nothing"] if schema.get("additionalProperties") is False else [_type(schema)]
    required = schema.get("required", ())
    lines = []
    for name, node in schema["properties"].items():
        node = node if isinstance(node, dict) else {}
        mark = "*" if name in required else " "
        default = f" = {json.dumps(node['default'])}" if "default" in node else ""
        lines.append(f"{name}{mark} ({_type(node)}{default})  {node.get('description', '')}".rstrip())
    return lines or ["nothing"]


def _referred(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """What a schema's references lead to, as far as they lead anywhere new."""
    passed: list[str] = []
    while "$ref" in node and node["$ref"] not in passed:
        passed.append(node["$ref"])
        found: Any = root
        for key in passed[-1].removeprefix("#/").split("/"):
            found = found.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            return node
        node = found
    return node


def _type(node: Any) -> str:
    """The type of a schema in a few words.

    >>> _type({"type": "array", "items": {"type": ["string", "null"]}})
    'array of string or null'
    """
    if not isinstance(node, dict):
        return "any value"
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    if "enum" in node or "const" in node:
        return "one of " + ", ".join(map(str, node.get("enum", [node.get("const")])))
    for word in ("anyOf", "oneOf"):
        if word in node:
            return " or ".join(map(_type, node[word]))
    if "allOf" in node and "type" not in node:
        return " and ".join(dict.fromkeys(map(_type, node["allOf"])))
    kind = node.get("type") or next((kind for word, kind in _IMPLIED if word in node), "any value")
    if kind == "array" and "items" in node:
        return f"array of {_type(node['items'])}"
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"object of {_type(node['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
