"""Schemas of OpenAPI become JSON Schema 2020-12: the dialect of 3.0, references, and what only one direction has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.codegen.openapi_documents import Json, answering, imported, taking, tool
from tests.findings import short_form

PET = {"$ref": "#/components/schemas/Pet"}

# Each row: a schema of 3.0, the same in 2020-12.
DIALECT: dict[str, tuple[Json, Json]] = {
    "nullable": ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    "not nullable": ({"type": "string", "nullable": False}, {"type": "string"}),
    "a nullable enum": (
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "a nullable union": (
        {"oneOf": [{"type": "string"}], "nullable": True, "description": "d"},
        {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}], "description": "d"},
    ),
    "anything, nullable": ({"nullable": True}, {}),
    "an exclusive limit": (
        {"type": "number", "minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
        {"type": "number", "exclusiveMinimum": 1, "maximum": 9},
    ),
    "an example": ({"type": "string", "example": "x"}, {"type": "string", "examples": ["x"]}),
    "words of ours and of others": (
        {"type": "string", "x-order": 1, "format": "date", "xml": {"name": "a"}, "externalDocs": {"url": "u"}},
        {"type": "string", "x-order": 1, "format": "date"},
    ),
    "deep inside": (
        {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}}},
        {"type": "array", "items": {"type": "object", "additionalProperties": {"type": ["string", "null"]}}},
    ),
    "a property called like a word": (
        {"type": "object", "properties": {"example": {"type": "string"}, "nullable": {"type": "string"}}},
        {"type": "object", "properties": {"example": {"type": "string"}, "nullable": {"type": "string"}}},
    ),
}


@pytest.mark.parametrize("case", DIALECT)
def test_the_dialect_of_3_0(tmp_path: Path, case: str) -> None:
    given, expected = DIALECT[case]
    assert tool(tmp_path, answering(given, version="3.0.3"))["outputSchema"] == expected


def test_3_1_is_json_schema_already(tmp_path: Path) -> None:
    schema = {"type": ["string", "null"], "exclusiveMinimum": 1, "const": "a", "examples": ["b"], "$comment": "c"}
    assert tool(tmp_path, answering(schema))["outputSchema"] == schema


def test_beside_a_reference(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"pet": {**PET, "description": "d", "nullable": True, "maxLength": 1}}}
    components = {"schemas": {"Pet": {"type": "string"}}}
    old = tool(tmp_path, answering(schema, version="3.0.3", components=components))["outputSchema"]
    assert old["properties"]["pet"] == {"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}], "description": "d"}
    new = tool(tmp_path, answering(schema, components=components))["outputSchema"]
    assert new["properties"]["pet"] == {"$ref": "#/$defs/Pet", "description": "d", "maxLength": 1}


def test_only_what_is_reached_is_defined(tmp_path: Path) -> None:
    schemas = {
        "Pet": {"type": "object", "properties": {"owner": {"$ref": "#/components/schemas/Owner.v1"}, "mother": PET}},
        "Owner.v1": {"type": "string"},
        "Other": {"type": "integer"},
    }
    found = tool(tmp_path, answering({"type": "array", "items": PET}, components={"schemas": schemas}))["outputSchema"]
    assert found == {
        "type": "array",
        "items": {"$ref": "#/$defs/Pet"},
        "$defs": {
            "Pet": {
                "type": "object",
                "properties": {"owner": {"$ref": "#/$defs/Owner.v1"}, "mother": {"$ref": "#/$defs/Pet"}},
            },
            "Owner.v1": {"type": "string"},
        },
    }


def test_a_root_that_only_refers_is_said_at_once(tmp_path: Path) -> None:
    components = {"schemas": {"Pet": {"type": "object", "properties": {"x": {"type": "string"}}}}}
    assert tool(tmp_path, answering(PET, components=components))["outputSchema"] == components["schemas"]["Pet"]


def test_definitions_of_one_name_in_several_places(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "pets.yaml").write_text(
        "Pet: {type: integer}\nschemas: {Pet: {type: array, items: {$ref: '#/Pet'}}}\nBack: {$ref: '../whole.json'}\n"
    )
    (tmp_path / "whole.json").write_text(json.dumps({"type": "boolean"}))
    schema = {
        "type": "object",
        "properties": {
            "a": PET,
            "b": {"$ref": "more/pets.yaml#/schemas/Pet"},
            "c": {"$ref": "more/pets.yaml#/Back"},
            "d": {"$ref": "#/components/schemas/we%C3%AFrd~1name~0"},
        },
    }
    components = {"schemas": {"Pet": {"type": "string"}, "weïrd/name~": {"type": "null"}}}
    found = tool(tmp_path, answering(schema, components=components))["outputSchema"]
    keys = [value["$ref"].removeprefix("#/$defs/") for value in found["properties"].values()]
    assert (keys[0], keys[1][:4], keys[2], keys[3]) == ("Pet", "Pet_", "Back", "we_rd_name_")
    assert found["$defs"]["whole"] == {"type": "boolean"}
    items = found["$defs"][keys[1]]["items"]["$ref"].removeprefix("#/$defs/")
    assert items not in keys
    assert found["$defs"][items] == {"type": "integer"}
    assert found["$defs"]["Pet"] == {"type": "string"}


HIDING = {
    "type": "object",
    "required": ["id", "name", "secret"],
    "properties": {
        "id": {"$ref": "#/components/schemas/Id"},
        "name": {"type": "string"},
        "secret": {"type": "string", "writeOnly": True},
    },
}
COMPONENTS = {
    "schemas": {
        "Pet": HIDING,
        "Id": {"type": "integer", "readOnly": True},
        "Dog": {"allOf": [PET, {"type": "object", "required": ["id", "bark"]}], "required": ["secret"]},
    }
}


def test_what_only_the_service_gives_is_not_asked_for(tmp_path: Path) -> None:
    body = tool(tmp_path, taking(PET, components=COMPONENTS))["inputSchema"]["$defs"]["Pet"]
    assert list(body["properties"]) == ["name", "secret"]
    assert body["required"] == ["name", "secret"]


def test_what_is_only_sent_is_not_expected_back(tmp_path: Path) -> None:
    answer = tool(tmp_path, answering(PET, components=COMPONENTS))["outputSchema"]
    assert list(answer["properties"]) == ["id", "name"]
    assert answer["required"] == ["id", "name"]


def test_the_same_through_compositions(tmp_path: Path) -> None:
    dog = {"$ref": "#/components/schemas/Dog"}
    body = tool(tmp_path, taking(dog, components=COMPONENTS))["inputSchema"]["$defs"]["Dog"]
    assert body["allOf"][1]["required"] == ["bark"]
    assert body["required"] == ["secret"]
    assert "required" not in tool(tmp_path, answering(dog, components=COMPONENTS))["outputSchema"]


def test_discriminators_are_kept_for_the_reader(tmp_path: Path) -> None:
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Dog")]
    mapping = {"cat": "#/components/schemas/Cat", "dog": "Dog", "cow": "#/components/schemas/Cow", "no": "absent.yaml"}
    schema = {"oneOf": refs, "discriminator": {"propertyName": "kind", "mapping": mapping}}
    schemas = {name: {"type": "object", "title": name} for name in ("Cat", "Dog", "Cow")}
    found = tool(tmp_path, answering(schema, components={"schemas": schemas}))["outputSchema"]
    assert found["discriminator"] == {
        "propertyName": "kind",
        "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog", "cow": "#/components/schemas/Cow", "no": "absent.yaml"},
    }


def test_references_to_parameters_bodies_answers_and_paths(tmp_path: Path) -> None:
    text = """
openapi: 3.1.0
info: {title: t, version: "1"}
servers: [{url: "https://a.example"}]
paths:
  /x: {$ref: "#/components/pathItems/X"}
components:
  pathItems:
    X:
      post:
        parameters: [{$ref: "#/components/parameters/Limit"}]
        requestBody: {$ref: "#/components/requestBodies/Pet"}
        responses: {"200": {$ref: "#/components/responses/Pet"}}
  parameters: {Limit: {name: limit, in: query, schema: {$ref: "#/components/schemas/Limit"}}}
  requestBodies: {Pet: {content: {application/json: {schema: {type: string}}}}}
  responses: {Pet: {description: d, content: {application/json: {schema: {type: integer}}}}}
  schemas: {Limit: {type: integer}}
"""
    [found] = imported(tmp_path, text).tools
    assert found["inputSchema"]["properties"] == {"limit": {"$ref": "#/$defs/Limit"}, "body": {"type": "string"}}
    assert found["inputSchema"]["$defs"] == {"Limit": {"type": "integer"}}
    assert found["outputSchema"] == {"type": "integer"}


def test_a_schema_that_is_sent_in_parts_and_as_json(tmp_path: Path) -> None:
    upload = {"$ref": "#/components/schemas/Upload"}
    components = {
        "schemas": {"Upload": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}}
    }
    content = taking(upload, "multipart/form-data", components=components)
    content["paths"]["/json"] = {"post": {"requestBody": {"content": {"application/json": {"schema": upload}}}}}
    parts, whole = imported(tmp_path, content).tools
    assert parts["inputSchema"]["properties"]["body"]["properties"]["file"]["contentEncoding"] == "base64"
    assert whole["inputSchema"]["$defs"]["Upload"] == components["schemas"]["Upload"]


def test_references_to_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "pet.yaml").write_text("type: string\n")
    for reference in ("pet.yaml", "pet.yaml#", "pet.yaml#/"):
        assert tool(tmp_path, answering({"$ref": reference}))["outputSchema"] == {"type": "string"}


def test_patterns_that_only_the_service_can_judge(tmp_path: Path) -> None:
    patterns = {
        "ahead": "^(?=.*x)y$",
        "back": r"(a)\1",
        "behind": "(?<!a)b",
        "plain": r"^\(?[a-z]+\\1$",
        "named": "(?P<a>x)",
        "vast": r"^(\S{1,9000}){1,9000}$",
    }
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "pattern": text} for name, text in patterns.items()},
    }
    service = imported(tmp_path, answering(schema))
    found = service.tools[0]["outputSchema"]["properties"]
    assert [name for name in found if "x-pattern" in found[name]] == ["ahead", "back", "behind", "vast"]
    assert [name for name in found if "pattern" in found[name]] == ["plain", "named"]
    assert short_form(service.notes[0]).startswith(
        "the pattern cannot be matched in linear time, so only the service checks it @ api.json:/"
    )
    assert len(service.notes) == 4


def test_a_schema_that_was_left_empty(tmp_path: Path) -> None:
    service = imported(tmp_path, answering({"type": "object", "properties": {"a": None}}))
    assert service.tools[0]["outputSchema"]["properties"] == {"a": {}}
    assert short_form(service.notes[0]).startswith("the schema is empty, so it accepts any value @ api.json:/paths/")
