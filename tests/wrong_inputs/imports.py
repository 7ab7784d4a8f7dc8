"""Imports: their tables in ``pyproject.toml``, and what the sources answer."""

from __future__ import annotations

from collections.abc import Sequence

from tests.wrong_inputs.rows import PYPROJECT, WrongInput


def _imports(title: str, table: str, command: Sequence[str] = ("import", "--trust"), **files: str) -> WrongInput:
    named = {path.replace("_", "."): text for path, text in files.items()}
    return WrongInput(title, {"pyproject.toml": f"{PYPROJECT.lstrip()}\n{table}", **named}, command, {})


def _time(keys: str) -> str:
    return f"[tool.toolkit.imports.time]\n{keys}\n"


TOOLS = '[{"name": "add", "input_schema": {"type": "object"}}]\n'

ROWS = [
    _imports("no imports", ""),
    _imports("an unknown import", _time('command = ["mcp-server-time"]'), ("import", "tiem")),
    _imports("a misspelt key of an import", _time('command = ["mcp-server-time"]\nnetwrok = true')),
    _imports("a misspelt source of an import", _time('comand = ["mcp-server-time"]')),
    _imports("a key that other programs use", _time('cmd = "mcp-server-time"\nargs = ["--utc"]')),
    _imports("a command that is a string", _time('command = "mcp-server-time"')),
    _imports("two sources at once", _time('command = ["mcp-server-time"]\nurl = "https://example.org/mcp"')),
    _imports("a key of another kind of import", _time('command = ["mcp-server-time"]\nheaders = {A = "b"}')),
    _imports("a network that does not exist", _time('command = ["mcp-server-time"]\nnetwork = "guard"')),
    _imports("a timeout in words", _time('command = ["mcp-server-time"]\ntimeout = "one minute"')),
    _imports("a secret in the settings", _time('url = "https://example.org/mcp"\noauth = {client_secret = "x"}')),
    _imports("an address with a password", _time('url = "https://me:secret@example.org/mcp"')),
    _imports("an import that is not a table", "imports = 1\n"),
    _imports("an import that nobody confirmed", _time('command = ["mcp-server-time"]'), ("import",)),
    _imports("a program that does not exist", _time('command = ["no-such-server"]')),
    _imports("a file that does not exist", _time('openapi = "api.yaml"')),
    _imports("a Swagger document", _time('openapi = "api.yaml"'), api_yaml='swagger: "2.0"\npaths: {}\n'),
    _imports(
        "an OpenAPI document with a reference that leads nowhere",
        _time('openapi = "api.yaml"\nurl = "https://example.org"'),
        api_yaml="""
        openapi: 3.1.0
        paths:
          /items:
            get:
              operationId: items
              parameters:
                - $ref: "#/components/parameters/Limit"
        """,
    ),
    _imports(
        "an operation that does not exist",
        _time('openapi = "api.yaml"\nurl = "https://example.org"\noperations = ["item"]'),
        api_yaml="""
        openapi: 3.1.0
        paths:
          /items:
            get:
              operationId: items
        """,
    ),
    _imports("a web address without http", _time('url = "localhost:8000/mcp"')),
    _imports("a server that is not running", _time('url = "http://localhost:9/mcp"')),
    _imports("a file of tools in no known format", _time('tools = "tools.json"'), tools_json='[{"title": "add"}]\n'),
    _imports(
        "one import that fails, and one that does not",
        '[tool.toolkit.imports.gone]\ntools = "gone.json"\n\n[tool.toolkit.imports.sums]\ntools = "tools.json"\n',
        tools_json=TOOLS,
    ),
    _imports("an import that generate has not seen yet", _time('command = ["mcp-server-time"]'), ("check",)),
]
