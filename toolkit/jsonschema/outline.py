"""A schema in a few lines for people: what a tool takes, what it returns."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import unquote

from toolkit.jsonschema.keywords import UNIONS, Schema
from toolkit.jsonschema.pointer import unescape_key
from toolkit.jsonschema.references import References

# Keywords by which a schema without a type shows which it means.
_IMPLIED: Final = (("properties", "object"), ("additionalProperties", "object"), ("items", "array"))


def outline(schema: Schema | None) -> list[str]:
    """One line for each property: name, ``*`` if required, type, default, description; else the type of the whole."""
    if schema is None:
        return ["text"]
    found = References(schema).follow(schema)
    schema = found if isinstance(found, dict) else schema
    if "properties" not in schema:
        return ["nothing"] if schema.get("additionalProperties") is False else [_type(schema)]
    required = schema.get("required", ())
    lines = []
    for name, node in schema["properties"].items():
        node = node if isinstance(node, dict) else {}
        mark = "*" if name in required else " "
        default = f" = {json.dumps(node['default'])}" if "default" in node else ""
        described = " ".join(str(node.get("description", "")).split())
        lines.append(f"{name}{mark} ({_type(node)}{default})  {described}".rstrip())
    return lines or ["nothing"]


def _type(node: Any) -> str:
    """The type of a schema in a few words.

    >>> _type({"type": "array", "items": {"type": ["string", "null"]}})
    'array of string or null'
    """
    if not isinstance(node, dict):
        return "any value"
    if "$ref" in node:
        return unescape_key(unquote(str(node["$ref"]).rpartition("/")[2]))
    if "enum" in node or "const" in node:
        return "one of " + ", ".join(map(str, node.get("enum", [node.get("const")])))
    for word in UNIONS:
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
