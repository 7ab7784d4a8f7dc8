"""OpenAPI documents that are wrong or meant to harm: every mistake at its place, all at once, and soon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.openapi_documents import OK, Json, answering, document, imported, one, taking
from tests.findings import short_forms
from toolkit.errors import SpecError


def mistakes(folder: Path, content: Json | str, **options: Any) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        imported(folder, content, **options)
    return short_forms(caught.value)


WAY_OUT = 'set url = "https://..." in the import\'s settings'
REF = "/paths/~1pets/get/responses/200/content/application~1json/schema/$ref"
# Each row: the document, what is said of it.
MISTAKES: dict[str, tuple[Json, list[str]]] = {
    "Swagger 2.0": (
        {"swagger": "2.0", "paths": {"/x": 5}},
        [
            "this is Swagger 2.0, and only OpenAPI 3.0 and 3.1 are supported: convert the document, for example with "
            "`npx swagger2openapi`, and import the result @ api.json:/swagger"
        ],
    ),
    "something else": (
        {"name": "x"},
        ["this is not an OpenAPI document: it has no 'openapi: 3.0.x' or 'openapi: 3.1.x' @ api.json:"],
    ),
    "a later version": (
        document("4.0.0"),
        ["only OpenAPI 3.0 and 3.1 are supported: 'openapi' must be the string '3.0.x' or '3.1.x' @ api.json:/openapi"],
    ),
    "no operations": (document(), ["the document has no operations @ api.json:"]),
    "no server": (
        one({}, servers=[{"url": "/v1"}]),
        [f"the document names no server with http:// or https://: {WAY_OUT} @ api.json:"],
    ),
    "two servers": (
        one({}, servers=[{"url": "https://a.example"}, {"url": "https://b.example"}]),
        [f"the document names 2 servers ('https://a.example', 'https://b.example'): {WAY_OUT} @ api.json:"],
    ),
    "a server of its own": (
        one({"servers": [{"url": "https://other.example"}]}),
        [
            "the operation has its own server, 'https://other.example': import it separately with that 'url' and "
            "with 'operations', or leave it out of 'operations' @ api.json:/paths/~1pets/get"
        ],
    ),
    "one name for two": (
        document(paths={"/a": {"get": {"operationId": "x", "responses": OK}, "put": {"operationId": "x"}}}),
        [
            "PUT /a and GET /a would both be the tool 'x': change one 'operationId', or list only one in "
            "'operations' @ api.json:/paths/~1a/put"
        ],
    ),
    "a parameter of no place": (
        one({"parameters": [{"name": "a", "in": "body"}, {"in": "query"}, 7]}),
        [
            "a parameter needs a 'name', and 'in' must be one of path, query, header, cookie @ api.json:/paths/~1pets/get/parameters/0",
            "a parameter needs a 'name', and 'in' must be one of path, query, header, cookie @ api.json:/paths/~1pets/get/parameters/1",
            "this must be an object, not a number @ api.json:/paths/~1pets/get/parameters/2",
        ],
    ),
    "a style of another place": (
        one({"parameters": [{"name": "a", "in": "query", "style": "matrix", "schema": {}}]}),
        [
            "'matrix' is not a style of query parameters: use form, spaceDelimited, pipeDelimited, deepObject "
            "@ api.json:/paths/~1pets/get/parameters/0"
        ],
    ),
    "wrong shapes": (
        document(paths={"/a": 1, "/b": {"get": 2}, "/c": {"get": {"parameters": 3, "responses": 4, "requestBody": 5}}}),
        [
            "this must be an object, not a number @ api.json:/paths/~1a",
            "an operation must be an object @ api.json:/paths/~1b/get",
            "'parameters' must be a list @ api.json:/paths/~1c/get/parameters",
            "this must be an object, not a number @ api.json:/paths/~1c/get/requestBody",
            "'responses' must be an object @ api.json:/paths/~1c/get/responses",
        ],
    ),
    "a schema that is none": (
        answering({"type": "object", "properties": {"a": 7, "b": {"$dynamicRef": "#x"}}}),
        [
            f"a schema must be an object, not a number @ api.json:{REF[:-5]}/properties/a",
            f"'$dynamicRef' is not supported: use a '$ref' with a JSON pointer @ api.json:{REF[:-5]}/properties/b/$dynamicRef",
        ],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(tmp_path: Path, case: str) -> None:
    content, expected = MISTAKES[case]
    assert list(mistakes(tmp_path, content)) == expected


# Each row: a reference, what is said of it.
REFERENCES = {
    "#/components/schemas/Pat": "'#/components/schemas/Pat' does not exist. Did you mean 'Pet'?",
    "https://example.org/pet.json": "'https://example.org/pet.json' is not followed: nothing is downloaded; save the file in "
    "the document's folder",
    "//example.org/pet.json": "'//example.org/pet.json' is not followed: nothing is downloaded; save the file in the document's "
    "folder",
    "file:///etc/passwd": "'file:///etc/passwd' is not followed: nothing is downloaded; save the file in the document's folder",
    "/etc/passwd": "'/etc/passwd' is not followed: nothing is downloaded; save the file in the document's folder",
    "../secret.json": "'../secret.json' is not followed: it is outside the document's folder; move the file into it",
    "a/../../secret.json": "'a/../../secret.json' is not followed: it is outside the document's folder; move the file into it",
    "%2e%2e/secret.json": "'%2e%2e/secret.json' is not followed: it is outside the document's folder; move the file into it",
    "link.json": "'link.json' is in a file that could not be read",
    "absent.json#/a": "'absent.json#/a' is in a file that could not be read",
    "#Pet": "'#Pet' is not followed: write a JSON pointer, such as '#/components/schemas/Pet'",
    "#/components/schemas/Loop": "the reference is circular",
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_references(tmp_path: Path, reference: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "secret.json").write_text('{"type": "string"}')
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    loop = {"$ref": "#/components/schemas/Loop2"}
    schemas = {"Pet": {"type": "string"}, "Loop": loop, "Loop2": {"$ref": "#/components/schemas/Loop"}}
    found = mistakes(folder, answering({"$ref": reference}, components={"schemas": schemas}))
    assert REFERENCES[reference] in [each.partition(" @ ")[0] for each in found]
    assert str(tmp_path) not in "".join(found)


def test_mistakes_of_several_files_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: {$ref: '#/y'}\nx2: 7\n")
    (tmp_path / "b.json").write_text("{")
    refs = {name: {"$ref": ref} for name, ref in (("a", "a.yaml#/x"), ("b", "b.json"), ("c", "a.yaml#/x2"))}
    found = mistakes(tmp_path, answering({"type": "object", "properties": refs}))
    assert found == (
        f"'b.json' is in a file that could not be read @ api.json:{REF[:-5]}/properties/b/$ref",
        "'#/y' does not exist @ a.yaml:/x/$ref",
        "a schema must be an object, not a number @ a.yaml:/x2",
        "not JSON: Expecting property name enclosed in double quotes @ b.json:1:2",
    )


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"


def test_yaml_bombs_and_tags(tmp_path: Path) -> None:
    text = f"openapi: 3.1.0\nx-tag: !!python/object/apply:os.system [ls]\n{BOMB}"
    found = mistakes(tmp_path, text)
    assert "tags are not supported: remove 'tag:yaml.org,2002:python/object/apply:os.system' @ api.yaml:/x-tag" in found
    assert any(each.startswith("aliases are not supported") for each in found)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_deep_nesting(tmp_path: Path, suffix: str) -> None:
    deep = '{"items": ' * 10_000 + "{}" + "}" * 10_000
    file = tmp_path / f"deep.{suffix}"
    file.write_text(deep)
    found = mistakes(tmp_path, answering({"$ref": file.name}))
    assert [each.partition(" @ ")[0] for each in found if file.name + ":" in each] == ["nested deeper than 100 levels"]


def test_a_chain_of_ten_thousand_references(tmp_path: Path) -> None:
    schemas: Json = {
        f"S{n}": {"type": "array", "items": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(10_000)
    }
    schemas["S10000"] = {"type": "string"}
    start = {"$ref": "#/components/schemas/S0"}
    service = imported(tmp_path, answering(start, components={"schemas": schemas}))
    found = service.tools[0]["outputSchema"]["$defs"]
    assert 1000 < len(found) < 1300
    assert [key for key in found if found[key] == {}] == [last := list(found)[-1]]
    assert service.notes == [f"GET /pets: its schemas are too large, so these definitions accept any value (1: {last})"]


@pytest.mark.slow
def test_schemas_without_measure(tmp_path: Path) -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_001)}}
    found = mistakes(tmp_path, taking(wide))
    assert found == ("a schema of the operation has more than 15000 values @ api.json:/paths/~1pets/post",)


def test_a_document_of_mistakes_only_is_cut(tmp_path: Path) -> None:
    properties = {f"p{n}": n for n in range(1000)}
    found = mistakes(tmp_path, answering({"type": "object", "properties": properties}))
    assert len(found) == 101
    assert found[-1] == "more than 100 mistakes; the rest is not listed @ api.json:"


def test_more_tools_than_a_file_may_hold(tmp_path: Path) -> None:
    media = {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
    operation = {"responses": {"200": {"description": "ok", "content": media}}}
    pet = {"type": "object", "description": "x" * 100_000}
    paths = {f"/p{n}": {"get": operation} for n in range(350)}
    content = document(paths=paths, components={"schemas": {"Pet": pet}})
    assert mistakes(tmp_path, content) == (
        "its 350 tools take 33.5 MiB, more than the 32 of a spec file: select some with 'operations', in several imports "
        "if needed @ api.json:",
    )
    assert len(imported(tmp_path, content, operations=["GET /p1"]).tools) == 1


def test_operations_that_are_not_there(tmp_path: Path) -> None:
    paths = {"/a": {"get": {"operationId": "listPets", "responses": OK}, "put": {"responses": OK}}}
    found = mistakes(tmp_path, document(paths=paths), operations=["listPet", "PUT /b"])
    assert found[:2] == (
        "'operations' lists 'listPet', which does not exist. Did you mean 'listPets'? @ api.json:",
        "'operations' lists 'PUT /b', which does not exist. Did you mean 'PUT /a'? @ api.json:",
    )


def test_texts_of_a_document_are_data(tmp_path: Path) -> None:
    text = '"""\n__import__("os")\x00\u2028'
    schema = {"type": "object", "properties": {text: {"$ref": "#/components/schemas/" + text.replace("/", "~1")}}}
    content = answering(schema, components={"schemas": {text: {"type": "string", "description": text}}})
    [found] = imported(tmp_path, content).tools
    [key] = found["outputSchema"]["$defs"]
    assert key == "___import___os_"
    assert json.loads(json.dumps(found)) == found
