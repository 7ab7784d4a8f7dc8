"""OpenAPI documents become tools: names, texts, parameters, bodies, answers, and how each is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from tests import command_line
from tests.codegen.openapi_documents import OK, Json, answering, document, imported, one, taking, tool
from tests.findings import short_form
from tests.projects import Project
from toolkit.codegen import ImportSettings
from toolkit.codegen.imports.openapi import import_openapi
from toolkit.schema.spec import is_wire_name

STRING = {"type": "string"}


def parameter(name: str, place: str, **keys: Any) -> Json:
    return {"name": name, "in": place, "schema": STRING, **keys}


def test_a_whole_operation(tmp_path: Path) -> None:
    text = """
openapi: 3.0.3
info: {title: Pets, version: "1.2"}
servers: [{url: "https://{region}.example.org/v1", variables: {region: {default: eu}}}]
paths:
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: integer}, description: Which.}
      - {name: verbose, in: query, schema: {type: string}}
    get:
      operationId: showPet
      summary: One pet
      description: All that is known of it.
      deprecated: true
      parameters:
        - {name: verbose, in: query, schema: {type: boolean, default: false}}
      responses:
        200: {description: ok, content: {application/json: {schema: {type: array, items: {type: integer}}}}}
        default: {description: bad, content: {application/json: {schema: {type: object}}}}
"""
    service = imported(tmp_path, text)
    assert (service.url, service.title, service.version) == ("https://eu.example.org/v1", "Pets", "1.2")
    assert service.tools == [
        {
            "name": "showPet",
            "description": "Deprecated.\n\nOne pet\n\nAll that is known of it.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "petId": {"type": "integer", "description": "Which."},
                    "verbose": {"type": "boolean", "default": False},
                },
                "required": ["petId"],
                "additionalProperties": False,
            },
            "outputSchema": {"type": "array", "items": {"type": "integer"}},
            "annotations": {"readOnlyHint": True, "openWorldHint": True, "deprecated": True},
            "permissions": ["network"],
            "request": {
                "method": "get",
                "path": "/pets/{petId}",
                "parameters": {"petId": {"in": "path"}, "verbose": {"in": "query"}},
                "accept": "application/json",
            },
        }
    ]


NAMES = {
    "kept": ({"operationId": "repos/get-content"}, "repos/get-content"),
    "made to fit": ({"operationId": "pets#show(1)"}, "pets_show_1_"),
    "without dots and dunders": ({"operationId": "../a/__class__"}, "a/_class__"),
    "of method and path": ({}, "get_a_b_c"),
    "of method and path, where nothing is left": ({"operationId": "äöü"}, "_"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names(tmp_path: Path, case: str) -> None:
    operation, expected = NAMES[case]
    [found] = imported(tmp_path, document(paths={"/a/{b}/c": {"get": {"responses": OK, **operation}}})).tools
    assert found["name"] == expected
    assert is_wire_name(expected)


def test_a_long_name_is_cut_and_kept_apart(tmp_path: Path) -> None:
    paths = {f"/{end}": {"get": {"operationId": "a" * 200 + end, "responses": OK}} for end in "xy"}
    first, second = (found["name"] for found in imported(tmp_path, document(paths=paths)).tools)
    assert first != second
    assert len(first) == len(second) == 128


# Each row: parameters of the operation, the names of the properties, what `request` says of them.
PARAMETERS: dict[str, tuple[list[Json], list[str], Json]] = {
    "usual": (
        [parameter("q", "query"), parameter("X-Id", "header"), parameter("c", "cookie")],
        ["q", "X-Id", "c"],
        {"q": {"in": "query"}, "X-Id": {"in": "header"}, "c": {"in": "cookie"}},
    ),
    "the same name in two places": (
        [parameter("id", "header"), parameter("id", "query"), parameter("id_header", "query")],
        ["id", "id_header", "id_header_"],
        {
            "id": {"in": "query"},
            "id_header": {"in": "query"},
            "id_header_": {"in": "header", "name": "id"},
        },
    ),
    "styles": (
        [
            parameter("a", "query", style="deepObject", explode=True),
            parameter("b", "query", explode=False),
            parameter("c", "query", style="form", explode=True, allowReserved=True),
            parameter("d", "header", explode=True),
        ],
        ["a", "b", "c", "d"],
        {
            "a": {"in": "query", "style": "deepObject", "explode": True},
            "b": {"in": "query", "explode": False},
            "c": {"in": "query", "allowReserved": True},
            "d": {"in": "header", "explode": True},
        },
    ),
    "JSON in a parameter": (
        [{"name": "where", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}],
        ["where"],
        {"where": {"in": "query", "json": True}},
    ),
    "headers that are no parameters": ([parameter("Accept", "header"), parameter("Authorization", "header")], [], {}),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters(tmp_path: Path, case: str) -> None:
    given, names, request = PARAMETERS[case]
    found = tool(tmp_path, one({"parameters": given}))
    assert list(found["inputSchema"]["properties"]) == names
    assert found["request"].get("parameters", {}) == request


def test_headers_of_the_settings_are_not_asked_for(tmp_path: Path) -> None:
    given = [parameter("X-Api-Key", "header", required=True), parameter("X-Trace", "header")]
    found = tool(tmp_path, one({"parameters": given}), headers={"x-api-key": "${KEY}"})
    assert list(found["inputSchema"]["properties"]) == ["X-Trace"]
    assert "KEY" not in json.dumps(found)


def test_a_path_and_its_parameters_disagree(tmp_path: Path) -> None:
    service = imported(tmp_path, one({"parameters": [parameter("b", "path")]}, path="/x/{a}"))
    assert service.tools[0]["inputSchema"]["properties"] == {"a": {"type": "string"}}
    assert list(map(short_form, service.notes)) == [
        "GET /x/{a}: the path has no {b}, so this parameter is ignored @ api.json:/paths/~1x~1{a}/get/parameters/0",
        "GET /x/{a}: the document does not describe {a} in the path, so it is a string @ api.json:/paths/~1x~1{a}/get",
    ]


PICTURE = {"type": "string", "format": "binary", "description": "A picture."}
AS_BASE64 = {"type": "string", "contentEncoding": "base64", "description": "A picture.\nBase64 of the bytes."}
# Each row: the document, the property's schema, what `request` says of it.
BODIES: dict[str, tuple[Json, Json, Json]] = {
    "JSON": (taking(STRING), STRING, {"property": "body", "mediaType": "application/json"}),
    "a dialect of JSON": (
        taking(STRING, "application/merge-patch+json; charset=utf-8"),
        STRING,
        {"property": "body", "mediaType": "application/merge-patch+json"},
    ),
    "any type": (taking(STRING, "*/*"), STRING, {"property": "body", "mediaType": "application/json"}),
    "a form": (
        taking(
            {"type": "object", "properties": {"tags": {"type": "array"}}},
            "application/x-www-form-urlencoded",
            {"encoding": {"tags": {"style": "form", "explode": False}}},
        ),
        {"type": "object", "properties": {"tags": {"type": "array"}}},
        {
            "property": "body",
            "mediaType": "application/x-www-form-urlencoded",
            "encoding": {"tags": {"style": "form", "explode": False}},
        },
    ),
    "parts": (
        taking(
            {
                "type": "object",
                "properties": {
                    "one": PICTURE,
                    "more": {"type": "array", "items": PICTURE},
                    "new": {"contentMediaType": "image/png"},
                    "text": STRING,
                },
            },
            "multipart/form-data",
            {"encoding": {"one": {"contentType": "image/*, image/png"}}},
        ),
        {
            "type": "object",
            "properties": {
                "one": AS_BASE64,
                "more": {"type": "array", "items": AS_BASE64},
                "new": {
                    "type": "string",
                    "contentMediaType": "image/png",
                    "contentEncoding": "base64",
                    "description": "Base64 of the bytes.",
                },
                "text": STRING,
            },
        },
        {
            "property": "body",
            "mediaType": "multipart/form-data",
            "encoding": {
                "one": {"contentType": "image/png", "base64": True},
                "more": {"base64": True},
                "new": {"base64": True},
            },
        },
    ),
    "text": (
        taking(STRING, "text/csv"),
        {"type": "string", "contentMediaType": "text/csv"},
        {"property": "body", "mediaType": "text/csv"},
    ),
    "bytes": (
        taking({}, "application/octet-stream"),
        {"type": "string", "contentEncoding": "base64", "contentMediaType": "application/octet-stream"},
        {"property": "body", "mediaType": "application/octet-stream", "base64": True},
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies(tmp_path: Path, case: str) -> None:
    content, schema, request = BODIES[case]
    found = tool(tmp_path, content)
    assert found["inputSchema"]["properties"] == {"body": schema}
    assert found["inputSchema"]["required"] == ["body"]
    assert found["request"]["body"] == request


def test_json_is_taken_before_a_form_and_a_form_before_parts(tmp_path: Path) -> None:
    order = ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "application/json"]
    chosen = []
    while order:
        body = {"content": {name: {"schema": {"type": "object"}} for name in order}}
        chosen.append(tool(tmp_path, one({"requestBody": body}, method="put"))["request"]["body"]["mediaType"])
        order.remove(chosen[-1])
    assert chosen == ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]


def test_a_parameter_called_body(tmp_path: Path) -> None:
    operation = {"parameters": [parameter("body", "query")], "requestBody": {"content": {"application/json": {}}}}
    found = tool(tmp_path, one(operation, method="post"))
    assert list(found["inputSchema"]["properties"]) == ["body", "request_body"]
    assert found["request"]["body"]["property"] == "request_body"


def content(schema: Json, media_type: str = "application/json") -> Json:
    return {"description": "", "content": {media_type: {"schema": schema}}}


# Each row: the responses, the output schema, what is asked for.
ANSWERS: dict[str, tuple[Json, Json | None, str]] = {
    "JSON": ({"200": content(STRING)}, STRING, "application/json"),
    "the types of Spring": ({"200": content(STRING, "*/*")}, STRING, "application/json"),
    "the status 2XX": ({"2XX": content(STRING), "4XX": content({})}, STRING, "application/json"),
    "default alone": ({"default": content(STRING)}, STRING, "application/json"),
    "nothing": ({"204": {"description": ""}}, None, "*/*"),
    "text": ({"200": content(STRING, "text/plain")}, None, "text/plain"),
    "JSON without a schema": (
        {"200": {"description": "", "content": {"application/json": {}}}},
        None,
        "application/json",
    ),
    "JSON beside another form of it": (
        {"200": {"description": "", "content": {"text/csv": {}, "application/json": {"schema": STRING}}}},
        STRING,
        "application/json",
    ),
    "different things": (
        {"201": content(STRING), "200": content({"type": "integer"}), "202": content(STRING)},
        {"anyOf": [{"type": "integer"}, STRING]},
        "application/json",
    ),
    "something or nothing": (
        {"200": content(STRING), "204": {"description": ""}},
        {"anyOf": [STRING, {"type": "null"}]},
        "application/json",
    ),
    "no responses": ({}, None, "*/*"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers(tmp_path: Path, case: str) -> None:
    responses, schema, accept = ANSWERS[case]
    found = tool(tmp_path, one({"responses": responses}))
    assert found.get("outputSchema") == schema
    assert found["request"]["accept"] == accept


def test_what_http_says_of_a_method(tmp_path: Path) -> None:
    methods = ("get", "head", "options", "put", "delete", "post", "patch")
    paths = {"/x": {method: {"operationId": method, "responses": OK} for method in methods}, "x-note": {"get": 1}}
    found = {each["name"]: each["annotations"] for each in imported(tmp_path, document(paths=paths)).tools}
    assert found.keys() == set(methods)
    assert [name for name in methods if found[name]["readOnlyHint"]] == ["get", "head", "options"]
    assert found["delete"]["destructiveHint"] is found["put"]["idempotentHint"] is True


def test_only_the_operations_asked_for_are_read(tmp_path: Path) -> None:
    good = {"operationId": "good", "responses": OK}
    paths = {"/a": {"get": good}, "/b": {"get": {"responses": OK}}, "/c": {"get": {"parameters": "broken"}}}
    found = imported(tmp_path, document(paths=paths), operations=["good", "get /b"]).tools
    assert [each["name"] for each in found] == ["good", "get_b"]


def test_what_security_wants_is_said(tmp_path: Path) -> None:
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "token": {"type": "http", "scheme": "bearer"},
        "query": {"type": "apiKey", "in": "query", "name": "key"},
    }
    components = {"securitySchemes": schemes}
    needs = one({"security": [{"key": [], "token": []}]}, components=components)
    assert imported(tmp_path, needs).notes == [
        "the security scheme 'key' needs the header 'X-Key': set headers = { \"X-Key\" = \"${API_KEY}\" } in the "
        "import's settings",
        "the security scheme 'token' needs the header 'Authorization': set headers = { \"Authorization\" = "
        '"Bearer ${API_TOKEN}" } in the import\'s settings',
    ]
    assert len(imported(tmp_path, needs, headers={"x-key": "${K}"}).notes) == 1
    assert imported(tmp_path, needs, headers={"x-key": "${K}", "authorization": "${T}"}).notes == []
    in_query = one({"security": [{"query": []}]}, components=components)
    assert "keys are only sent in headers" in str(imported(tmp_path, in_query).notes[0])
    assert imported(tmp_path, one({"security": []}, security=[{"key": []}], components=components)).notes == []


def test_every_schema_is_one(tmp_path: Path) -> None:
    pet = {"type": "object", "nullable": True, "properties": {"next": {"$ref": "#/components/schemas/Pet"}}}
    service = imported(
        tmp_path, answering({"$ref": "#/components/schemas/Pet"}, version="3.0.0", components={"schemas": {"Pet": pet}})
    )
    for found in service.tools:
        assert jsonschema_rs.meta.is_valid(found["inputSchema"])
        assert jsonschema_rs.meta.is_valid(found["outputSchema"])
    assert Draft202012Validator(service.tools[0]["outputSchema"]).is_valid({"next": {"next": None}})


def test_an_import_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api.json").write_text(json.dumps(one({"security": [{"key": []}]})))
    found = import_openapi(ImportSettings("pets", openapi="docs/api.json"), tmp_path)
    assert found.origin == {"service": {"title": "Pets", "version": "1"}, "url": "https://pets.example.org/v1"}
    assert [each["name"] for each in found.tools] == ["op"]
    assert found.notes == ("the security scheme 'key' is not defined",)
    elsewhere = ImportSettings("pets", openapi="docs/api.json", url="http://localhost:8080", operations=("op",))
    assert "url" not in import_openapi(elsewhere, tmp_path).origin


def test_bodies_that_cannot_be_sent_are_left_out_and_named(tmp_path: Path) -> None:
    body = {"content": {"application/json": {"schema": STRING}}}
    service = imported(tmp_path, one({"requestBody": body}))
    assert "body" not in service.tools[0]["request"]
    assert list(map(short_form, service.notes)) == [
        "GET /pets: GET requests have no body, so this one is ignored @ api.json:/paths/~1pets/get/requestBody"
    ]
    service = imported(tmp_path, one({"requestBody": {"content": {}}}, method="post"))
    assert list(map(short_form, service.notes)) == [
        "POST /pets: the body has no media type, so it is ignored @ api.json:/paths/~1pets/post/requestBody"
    ]


@pytest.mark.slow
def test_the_command_says_what_it_left_out(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = '\n[tool.toolkit.imports.pets]\nopenapi = "api.json"\n'
    project.write("pyproject.toml", (tmp_path / "pyproject.toml").read_text() + table)
    paths = {f"/x/{{a{n}}}": {"get": {"operationId": f"op{n}", "responses": OK}} for n in range(12)}
    project.write("api.json", json.dumps(document(paths=paths)))
    done = command_line.toolkit(tmp_path, "import", "--trust", "pets", check=True)
    assert done.stdout == f"acme/tools/pets.json: new\n  added: {', '.join(f'op{n}' for n in range(12))}\n"
    lines = done.stderr.splitlines()
    assert lines[:2] == ["pets: reading api.json", "pets: 12 tools"]
    note = "GET /x/{a0}: the document does not describe {a0} in the path, so it is a string (/paths/~1x~1{a0}/get)"
    assert lines[2].startswith("  note: api.json:1:") and lines[2].endswith(f": {note}")
    assert (len(lines), lines[-1]) == (13, "  and 2 more notes; --json prints all of them")


def test_a_document_of_many_megabytes_is_imported_and_generated(tmp_path: Path) -> None:
    operation = {"description": "Everything about a pet, in many words. " * 2_500, "responses": OK}
    content = document(paths={f"/pets/{number}": {"get": operation} for number in range(60)})
    assert len(json.dumps(content)) > 5 * 2**20
    project = Project(tmp_path)
    project.write("api.json", json.dumps(content))
    settings = (tmp_path / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{settings}[tool.toolkit.imports.pets]\nopenapi = "api.json"\n')
    command_line.toolkit(tmp_path, "import", "--trust", check=True)
    project.generate()
    assert len(list((project.output / "models").glob("get_pets_*.py"))) == 60
