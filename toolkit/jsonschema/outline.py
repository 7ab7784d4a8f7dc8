"""A schema in a few lines for people: what a tool takes, what it returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from toolkit.jsonschema.keywords import UNIONS, Schema
from toolkit.jsonschema.pointer import unescape_key
from toolkit.schema.keywords import References

# Keywords by which a schema without a type shows which it means.
_IMPLIED: Final = (("properties", "object"), ("additionalProperties", "object"), ("items", "array"))
_MAX_DEPTH: Final = 3


class OutlineRow(NamedTuple):
    """One property: ``*`` behind the name of a required one, type and default, description."""

    name: str
    type: str
    description: str


def outline(schema: Schema | None) -> list[OutlineRow]:
    """One row for each property, followed by those of what it holds (``todos[].status``); else the type of the whole.

    >>> outline({"properties": {"a": {"type": "integer", "default": 1}}, "required": ["a"]})
    [OutlineRow(name='a*', type='integer = 1', description='')]
    """
    if schema is None:
        return [OutlineRow("", "text", "")]
    references = References(schema)
    found = references.follow(schema)
    schema = found if isinstance(found, dict) else schema
    if "properties" not in schema:
        return [OutlineRow("", "nothing" if schema.get("additionalProperties") is False else _type(schema), "")]
    return list(_rows(schema, references, "", ())) or [OutlineRow("", "nothing", "")]


def _rows(schema: Schema, references: References, prefix: str, above: tuple[int, ...]) -> Iterator[OutlineRow]:
    required = schema.get("required", ())
    for name, node in schema["properties"].items():
        node = node if isinstance(node, dict) else {}
        default = f" = {json.dumps(node['default'])}" if "default" in node else ""
        described = " ".join(str(node.get("description", "")).split())
        yield OutlineRow(f"{prefix}{name}{'*' if name in required else ''}", f"{_type(node)}{default}", described)
        suffix, held = _held_object(node, references)
        # What holds itself is listed once.
        if held is not None and id(held) not in above and len(above) < _MAX_DEPTH:
            yield from _rows(held, references, f"{prefix}{name}{suffix}.", (*above, id(schema), id(held)))


def _held_object(node: Any, references: References) -> tuple[str, Schema | None]:
    """The object with properties that a property is, or has as its items."""
    suffix = ""
    for _ in range(_MAX_DEPTH):
        node = references.follow(node)
        if not isinstance(node, dict):
            return suffix, None
        if isinstance(node.get("properties"), dict):
            return suffix, node
        options = next((node[word] for word in UNIONS if word in node), ())
        objects = [option for option in options if references.follow(option) != {"type": "null"}]
        if len(objects) == 1:
            node = objects[0]
        elif isinstance(node.get("items"), dict):
            suffix, node = f"{suffix}[]", node["items"]
        else:
            return suffix, None
    return suffix, None


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
