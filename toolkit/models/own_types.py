"""The JSON Schemas of people's own types, as tools show them: pydantic's, closed, and without what says nothing."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from toolkit.jsonschema.keywords import UNIONS
from toolkit.jsonschema.walk import subschemas
from toolkit.wire.json_types import JsonObject


class _Plain(GenerateJsonSchema):
    """Without titles made up from names, and silent about defaults that are no JSON: those are left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        pass


def schema_of_arguments(model: type[BaseModel]) -> JsonObject:
    """What a call may send, 2020-12."""
    return _tidied(model.model_json_schema(schema_generator=_Plain))


def schema_of_output(adapter: TypeAdapter[Any]) -> JsonObject:
    """What a value is on the wire."""
    mode: Literal["serialization"] = "serialization"
    return _tidied(adapter.json_schema(schema_generator=_Plain, mode=mode))


def _tidied(schema: dict[str, Any]) -> JsonObject:
    definitions = schema.get("$defs", {})
    for key, node in definitions.items():
        if re.sub(r"\W", "_", node.get("title", "")) == key:
            del node["title"]
    if "$ref" in schema:
        # A type that contains itself stands in $defs only; an object of arguments must stand at the top.
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions}
    schema.pop("title", None)
    for _, node in subschemas(schema):
        if node.get("type") == "object" and "additionalProperties" not in node:
            node["additionalProperties"] = False
        if "default" in node and node["default"] is None and not _takes_null(node, definitions):
            # The function has a None of its own for what was left out; on the wire there is none.
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
