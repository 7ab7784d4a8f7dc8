"""JSON Schemas of the user's own types, for tools: pydantic's schemas, closed, and without noise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from toolkit.wire.json_types import JsonObject

# Where a schema holds other schemas; values such as `default` and `enum` are data.
_NAMED: Final = ("properties", "$defs", "patternProperties")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "propertyNames")


class _Plain(GenerateJsonSchema):
    """Without titles derived from names; defaults that are not JSON are left out without a warning."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        pass


def schema_of_arguments(model: type[BaseModel]) -> JsonObject:
    """The schema of what a call may send, 2020-12."""
    return _tidy(model.model_json_schema(schema_generator=_Plain))


def schema_of_output(adapter: TypeAdapter[Any]) -> JsonObject:
    """The schema of a value on the wire."""
    mode: Literal["serialization"] = "serialization"
    return _tidy(adapter.json_schema(schema_generator=_Plain, mode=mode))


def _tidy(schema: dict[str, Any]) -> JsonObject:
    definitions = schema.get("$defs", {})
    for key, node in definitions.items():
        if re.sub(r"\W", "_", node.get("title", "")) == key:
            del node["title"]
    if "$ref" in schema:
        # A recursive type is only in $defs; the object of arguments must be at the top.
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions}
    schema.pop("title", None)
    for node in _nodes(schema):
        if node.get("type") == "object" and "additionalProperties" not in node:
            node["additionalProperties"] = False
        if "default" in node and node["default"] is None and not _takes_null(node, definitions):
            # None is the function's own default for a missing argument; on the wire it is not allowed.
            del node["default"]
    return JsonObject(schema)


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    pending: list[Any] = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for word in _NAMED:
            pending += node.get(word, {}).values()
        for word in _LISTED:
            pending += node.get(word, ())
        pending += [node[word] for word in _SINGLE if word in node]


def _takes_null(node: dict[str, Any], definitions: dict[str, Any]) -> bool:
    if "$ref" in node:
        return _takes_null(definitions.get(node["$ref"].rpartition("/")[2], {}), {})
    for word in ("anyOf", "oneOf"):
        if word in node:
            return any(_takes_null(branch, definitions) for branch in node[word])
    if "enum" in node or "const" in node:
        return None in node.get("enum", [node.get("const")])
    return bool(node.get("type", "null") == "null")
