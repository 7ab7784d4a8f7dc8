"""Tools as providers are told of them become specs, each entry recognised by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.findings import short_form, short_forms
from tests.projects import Project
from toolkit.codegen import ImportSettings
from toolkit.codegen.imports.provider_json import import_provider_json
from toolkit.codegen.imports.run import ImportResult
from toolkit.errors import SetupError, SpecError

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SPEC = {"name": "weather", "description": "How it is.", "inputSchema": SCHEMA}
FUNCTION = {"name": "weather", "description": "How it is.", "parameters": SCHEMA}
DECLARATION = {
    "name": "weather",
    "description": "How it is.",
    "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]},
}

# Each row: an entry, the form it is of.
FORMS: dict[str, tuple[Any, str]] = {
    "OpenAI chat": ({"type": "function", "function": {**FUNCTION, "strict": True}}, "openai-chat"),
    "OpenAI Responses": ({"type": "function", **FUNCTION, "strict": None}, "openai-responses"),
    "OpenAI's old functions": (FUNCTION, "openai-functions"),
    "Anthropic": ({"name": "weather", "description": "How it is.", "input_schema": SCHEMA}, "anthropic"),
    "Anthropic, spelled out": (
        {"type": "custom", "name": "weather", "description": "How it is.", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
        "anthropic",
    ),
    "Gemini": ({"functionDeclarations": [DECLARATION]}, "gemini"),
    "Gemini's SDK": ({"function_declarations": [{**DECLARATION, "parameters": SCHEMA}]}, "gemini"),
    "a declaration alone": (DECLARATION, "gemini"),
    "a declaration in JSON Schema": (
        {"name": "weather", "description": "How it is.", "parametersJsonSchema": SCHEMA},
        "gemini",
    ),
    "Bedrock": (
        {"toolSpec": {"name": "weather", "description": "How it is.", "inputSchema": {"json": SCHEMA}}},
        "bedrock",
    ),
}  # fmt: skip
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "alone": lambda entry: entry,
    "in a list": lambda entry: [entry],
    "under tools": lambda entry: {"tools": [entry]},
    "in a request": lambda entry: {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [entry]},
    "in settings of a request": lambda entry: {"contents": [], "config": {"tools": [entry]}},
}


def imported(folder: Path, content: Any) -> ImportResult:
    (folder / "tools.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return import_provider_json(ImportSettings("legacy", tools="tools.json"), folder)


def mistakes(folder: Path, content: Any) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        imported(folder, content)
    return short_forms(caught.value)


@pytest.mark.parametrize("place", WRAPPED)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_in_every_place(tmp_path: Path, form: str, place: str) -> None:
    entry, name = FORMS[form]
    found = imported(tmp_path, WRAPPED[place](entry))
    assert (found.tools, found.origin, found.notes) == ([SPEC], {"forms": [name]}, ())


def test_forms_side_by_side(tmp_path: Path) -> None:
    entries = [json.loads(json.dumps(entry).replace("weather", f"t{n}")) for n, (entry, _) in enumerate(FORMS.values())]
    found = imported(tmp_path, {"tools": entries})
    assert [tool["name"] for tool in found.tools] == [f"t{n}" for n in range(len(FORMS))]


def test_old_functions_of_a_request(tmp_path: Path) -> None:
    assert imported(tmp_path, {"model": "m", "functions": [FUNCTION, {"name": "now"}]}).tools == [
        SPEC,
        {"name": "now", "description": "", "inputSchema": {"type": "object"}},
    ]


def test_the_dialect_of_gemini(tmp_path: Path) -> None:
    parameters = {
        "type": "OBJECT",
        "properties": {
            "a": {"type": "ARRAY", "minItems": "2", "items": {"type": "STRING", "nullable": True}},
            "maxLength": {"type": "STRING", "enum": ["x"], "nullable": True},
        },
    }
    entry = {"name": "t", "parameters": parameters, "response": {"type": "INTEGER"}}
    [tool] = imported(tmp_path, [{"functionDeclarations": [entry]}]).tools
    assert tool["inputSchema"]["properties"] == {
        "a": {"type": "array", "minItems": 2, "items": {"type": ["string", "null"]}},
        "maxLength": {"type": ["string", "null"], "enum": ["x", None]},
    }
    assert tool["outputSchema"] == {"type": "integer"}


# Each row: an entry, the name under which it is left out.
NATIVE = [
    ({"type": "web_search_preview"}, "web_search_preview"),
    ({"type": "code_interpreter", "container": {"type": "auto"}}, "code_interpreter"),
    ({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}, "web_search"),
    ({"type": "computer_20250124", "name": "computer", "display_width_px": 1}, "computer"),
    ({"type": "custom", "name": "free_text", "format": {"type": "text"}}, "free_text"),
    ({"googleSearch": {}}, "googleSearch"),
    ({"code_execution": {}}, "code_execution"),
]


@pytest.mark.parametrize(("entry", "name"), NATIVE)
def test_what_a_provider_runs_itself_is_left_out_by_name(tmp_path: Path, entry: Any, name: str) -> None:
    found = imported(tmp_path, [entry, FUNCTION])
    assert found.tools == [SPEC]
    place = f"/0/{name}" if "type" not in entry else "/0"
    [note] = found.notes
    assert (
        short_form(note) == f"'{name}' is run by the provider and has no schema, so it is ignored @ tools.json:{place}"
    )


def test_a_tool_of_gemini_that_is_both(tmp_path: Path) -> None:
    found = imported(tmp_path, [{"functionDeclarations": [DECLARATION], "googleSearch": {}}])
    assert (len(found.tools), len(found.notes)) == (1, 1)


FORMS_READ = "supported are tools of OpenAI (chat, Responses, functions), Anthropic, Gemini and Bedrock"
MISTAKES: list[tuple[Any, tuple[str, ...]]] = [
    ("[", ("not JSON: Expecting value @ tools.json:1:2",)),
    ([], (f"the file has no tools: {FORMS_READ} @ tools.json:",)),
    ([7, "x"], ("a tool must be an object, not a number @ tools.json:/0", "a tool must be an object, not a string @ tools.json:/1")),
    ([{"foo": 1}], (f"this is not the format of a known provider: {FORMS_READ} @ tools.json:/0",)),
    ([FUNCTION, FUNCTION], ("the file has two tools named 'weather', the first at /0: keep one @ tools.json:/1",)),
    ([{"type": "function", "function": {"description": "x"}}], (f"a tool needs a name and a schema: {FORMS_READ} @ tools.json:/0",)),
    ([SPEC], ("this is already a spec: move the file into a folder of 'specs' @ tools.json:/0",)),
    ('[{"name": "a", "name": "b"}]', ("the key 'name' is duplicated; keep one of them @ tools.json:/0/name",)),
]  # fmt: skip


@pytest.mark.parametrize(("content", "told"), MISTAKES)
def test_mistakes(tmp_path: Path, content: Any, told: tuple[str, ...]) -> None:
    assert mistakes(tmp_path, content) == told


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        SetupError,
        match=r"the file 'tools\.json' does not exist; give a path relative to pyproject\.toml \(.*/legacy/tools\)",
    ):
        import_provider_json(ImportSettings("legacy", tools="tools.json"), tmp_path)


@pytest.mark.slow
def test_a_project_of_them(tmp_path: Path) -> None:
    project = Project(tmp_path)
    settings = (tmp_path / "pyproject.toml").read_text()
    project.write(
        "pyproject.toml", settings + '\n[tool.toolkit.imports.legacy]\ntools = "legacy.json"\nprefix = "old_"\n'
    )
    project.write("legacy.json", json.dumps({"tools": [entry for entry, _ in list(FORMS.values())[:1]]}))
    done = command_line.python(
        project.root, "from toolkit.cli.commands import app; app(['import'], standalone_mode=False)"
    )
    assert "weather" in done.stdout
    project.generate()
    code = """
from acme.generated import ToolkitContext, SecurityPolicy, create_agent_toolkit, bind, OldWeatherInput, OldWeatherOutput
def weather(args: OldWeatherInput, ctx):
    return OldWeatherOutput(text=args.city)
with create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow")), packs=[bind(old_weather=weather)]) as toolkit:
    print(toolkit.invoke("old_weather", {"city": "Bern"}).content.text)
"""
    assert command_line.python(project.root, code).stdout == "Bern\n"
