"""JSON Schemas of the user's own types, for tools: pydantic's schemas, closed, and without noise."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from toolkit.jsonschema.keywords import UNIONS
from toolkit.jsonschema.walk import subschemas
from toolkit.wire.json_types import JsonObject


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
    for _, node in subschemas(schema):
        if node.get("type") == "object" and "additionalProperties" not in node:
            node["additionalProperties"] = False
        if "default" in node and node["default"] is None and not _takes_null(node, definitions):
            # None is the function's own default for a missing argument; on the wire it is not allowed.
            del node["default"]
    return JsonObject(schema)


def _takes_null(node: dict[str, Any], definitions: dict[str, Any]) -> bool:
    if "$ref" in node:
        return _takes_null(definitions.get(node["$ref"].rpartition("/")[2], {}), {})
    for word in UNIONS:
        if word in node:
            return any(_takes_null(branch, definitions) for branch in node[word])
    if "enum" in node or "const" in node:
        return None in node.get("enum", [node.get("const")])
    return bool(node.get("type", "null") == "null")
