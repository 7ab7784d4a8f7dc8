"""Specs that somebody wrote by hand, with the mistakes that people make."""

from __future__ import annotations

from tests.wrong_inputs.rows import PYPROJECT, WrongInput

SPEC = "acme/tools/add.yaml"


def _spec(title: str, text: str, command: str = "generate", file: str = SPEC) -> WrongInput:
    return WrongInput(title, {file: text}, (command,))


def _schema(title: str, schema: str, command: str = "generate") -> WrongInput:
    lines = "".join(f"\n      {line}" for line in schema.strip().splitlines())
    return _spec(
        title, f"name: add\ndescription: Add two numbers.\ninputSchema:{lines}\n".replace("\n      ", "\n  "), command
    )


ROWS = [
    _schema("a misspelt keyword", "type: object\nrequird: [a]\nproperties:\n  a: {type: integer, description: First.}"),
    _schema("a misspelt keyword, for lint", "type: object\npropertes:\n  a: {type: integer}", "lint"),
    _schema("a misspelt keyword, for check", "typ: object", "check"),
    _schema("a keyword in another case", "type: object\nproperties:\n  a: {type: string, minlength: 1}"),
    _schema("a keyword with underscores", "type: object\nadditional_properties: false"),
    _schema("a keyword in a list of branches", "type: object\nanyOf:\n  - requierd: [a]"),
    _schema(
        "an unquoted comma",
        "type: object\nproperties:\n  path: {type: string, description: The file, relative to the workspace.}",
    ),
    _schema(
        "an unquoted comma, and a colon after it",
        "type: object\nproperties:\n  path: {type: string, description: The file, in the form: folder/name}",
    ),
    _schema("a keyword without a value", "type: object\nrequired:\nproperties:\n  a: {type: integer}"),
    _schema("type null without quotes", "type: object\nproperties:\n  a: {type: null}"),
    _schema(
        "a misspelt mark for the policy", "type: object\nproperties:\n  path: {type: string, x-resourse: read-path}"
    ),
    _schema("a mark that does not exist", "type: object\nproperties:\n  path: {type: string, x-resource: read-paht}"),
    _schema("an unknown type", "type: object\nproperties:\n  a: {type: int}"),
    _schema("required that is not a list", "type: object\nrequired: a"),
    _schema(
        "a required name that is forbidden",
        "type: object\nadditionalProperties: false\nrequired: [a, c]\nproperties:\n  a: {type: integer}",
    ),
    _schema(
        "a required name that is not declared, for lint",
        "type: object\nrequired: [a, c]\nproperties:\n  a: {type: integer, description: First.}",
        "lint",
    ),
    _schema("a reference that leads nowhere", "type: object\nproperties:\n  a: {$ref: '#/$defs/Missing'}"),
    _schema(
        "a pattern that is not a regular expression", "type: object\nproperties:\n  a: {type: string, pattern: '['}"
    ),
    _schema("an input that is not an object", "type: string"),
    _spec("a misspelt key of the spec", "name: add\ninputSchma: {type: object}\npermisions: [read]\n"),
    _spec("a key of another tool format", "name: add\ninput_schema: {type: object}\nstrict: true\n"),
    _spec("the input as other tool formats name it", "name: add\nparameters: {type: object}\n"),
    _spec(
        "a key that is indented less than its neighbours", "name: add\ninputSchema:\n type: object\n  required: [a]\n"
    ),
    _spec(
        "an unquoted comma in the spec itself", "{name: add, description: Adds, quickly, inputSchema: {type: object}}\n"
    ),
    _spec("no name", "inputSchema: {type: object}\n"),
    _spec("a name that no tool may have", "name: ../add\ninputSchema: {type: object}\n"),
    _spec("an unknown permission", "name: add\ninputSchema: {type: object}\npermissions: [raed, network]\n"),
    _spec("a misspelt annotation", "name: add\ninputSchema: {type: object}\nannotations: {readOnlyHnt: true}\n"),
    _spec("an example without a result", "name: add\ninputSchema: {type: object}\nexamples: [{title: Adds}]\n"),
    _spec("a description file that is missing", "name: add\ninputSchema: {type: object}\ndescriptionFile: add.md\n"),
    _spec("YAML with a tab", "name: add\n\tdescription: Adds.\n"),
    _spec("YAML with a colon in a text", "name: add\ndescription: Adds: two numbers.\n"),
    _spec("a key that is there twice", "name: add\ntitle: One\ntitle: Two\ninputSchema: {type: object}\n"),
    _spec("an anchor", "name: add\ninputSchema: &schema {type: object}\noutputSchema: *schema\n"),
    _spec("an empty file", ""),
    _spec("a list of tools without a key", "- name: add\n  inputSchema: {type: object}\n"),
    _spec("JSON that ends too early", '{"name": "add",\n "inputSchema": {\n', file="acme/tools/add.json"),
    _spec(
        "a misspelt keyword in JSON",
        '{\n  "name": "add",\n  "inputSchema": {"type": "object", "proprties": {}}\n}\n',
        file="acme/tools/add.json",
    ),
    _spec("text that is not UTF-8", "name: add\ntitle: \udcff\n"),
    WrongInput(
        "one name for two tools",
        {
            "acme/tools/add.yaml": "name: add\ninputSchema: {type: object}\n",
            "acme/tools/sum.yaml": "name: add\ninputSchema: {type: object}\n",
        },
    ),
    WrongInput(
        "two names with one Python form",
        {
            "acme/tools/add.yaml": "name: add-one\ninputSchema: {type: object}\n",
            "acme/tools/sum.yaml": "name: add_one\ninputSchema: {type: object}\n",
        },
    ),
    _spec(
        "no descriptions, for lint",
        "name: add\ninputSchema: {type: object, properties: {a: {type: integer}}}\n",
        "lint",
    ),
    WrongInput("a path that does not exist, for lint", {}, ("lint", "tools.yml"), {"pyproject.toml": PYPROJECT}),
    WrongInput("a path that is not a spec, for lint", {"notes.txt": "Hello.\n"}, ("lint", "notes.txt")),
]
