"""Schemas that say wrong things of themselves: the type is honest, ``toolkit lint`` tells, generation goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

from tests import command_line
from tests.modules import input_model, module_text
from tests.projects import Project

DEFAULT = "'default' is not valid for its own schema and is ignored"
UNDECLARED = "'required' names 'ghost', which 'properties' does not declare; declare it, or remove it"
NOTHING_FITS = "no value is valid: 'enum' is empty, or 'type' excludes all of its values"


class Lie(NamedTuple):
    """``field`` is the line of the generated class; ``taken`` and ``refused`` are arguments."""

    schema: dict[str, Any]
    field: str
    finding: str
    pointer: str
    taken: dict[str, Any]
    refused: dict[str, Any]


def of(node: dict[str, Any], field: str, finding: str, pointer: str, taken: Any, refused: Any) -> Lie:
    """A lie in the schema of the optional property ``a``."""
    schema = {"type": "object", "properties": {"a": node}}
    return Lie(schema, field, finding, f"/properties/a/{pointer}".rstrip("/"), taken, {"a": refused})


LIES = {
    "null_by_default": of({"type": "string", "default": None}, "a: Omissible[str] = None", DEFAULT, "default", {}, None),
    "text_for_an_integer": of({"type": "integer", "default": "7"}, "a: Omissible[int] = None", DEFAULT, "default", {"a": 7}, "7"),
    "text_for_a_boolean": of({"type": "boolean", "default": "true"}, "a: Omissible[bool] = None", DEFAULT, "default", {}, "true"),
    "default_outside_the_enum": of({"enum": ["x", "y"], "default": "z"}, 'a: Omissible[Literal["x", "y"]] = None', DEFAULT, "default", {"a": "y"}, "z"),
    "default_below_the_limit": of({"type": "integer", "minimum": 1, "default": 0}, "a: Annotated[Omissible[int], Field(ge=1)] = None", DEFAULT, "default", {"a": 1}, 0),
    "text_for_a_list": of({"type": "array", "items": {"type": "string"}, "default": "none"}, "a: Omissible[list[str]] = None", DEFAULT, "default", {"a": []}, "none"),
    "wrong_inside_an_object": of({"type": "object", "properties": {"b": {"type": "integer"}}, "default": {"b": "x"}}, "a: Omissible[XInputA] = None", DEFAULT, "default", {"a": {"b": 1}}, {"b": "x"}),
    "default_against_a_reference": Lie(
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/T", "default": 3}}, "$defs": {"T": {"type": "string"}}},
        "a: Omissible[str] = None", DEFAULT, "/properties/a/default", {"a": "3"}, {"a": 3},
    ),
    "enum_without_values": of({"type": "string", "enum": []}, "a: Any | None = None", NOTHING_FITS, "enum", {}, "x"),
    "enum_of_another_type": of({"type": "integer", "enum": ["1", "2"]}, 'a: Omissible[Literal["1", "2"]] = None', NOTHING_FITS, "enum", {}, "1"),
    "const_of_another_type": of({"type": "string", "const": 5}, "a: Omissible[Literal[5]] = None", "no value is valid: 'type' excludes the value of 'const'", "const", {}, 5),
    "enum_partly_of_another_type": of({"type": "string", "enum": ["x", 1, None]}, 'a: Omissible[Literal["x"]] = None', "'enum' has values that 'type' excludes", "enum", {"a": "x"}, None),
    "required_on_the_property": of({"type": "string", "required": True, "not": {"const": ""}}, "a: Omissible[str] = None", "'required' is a list of names next to 'properties'; on a property it has no effect", "", {"a": "x"}, ""),
    "limit_of_draft_04": of({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, "a: Annotated[Omissible[int], Field(gt=1)] = None", "'exclusiveMinimum' is a number since draft-06; the boolean is read as in draft-04", "exclusiveMinimum", {"a": 2}, 1),
    "null_for_a_list": of({"type": "string", "enum": None, "not": {"const": ""}}, "a: Omissible[str] = None", "'enum' is null and is ignored", "enum", {"a": "x"}, ""),
    "null_for_a_format": of({"type": "string", "format": None, "not": {"const": ""}}, "a: Omissible[str] = None", "'format' is not a string and is ignored", "format", {"a": "x"}, ""),
    "draft_that_nobody_knows": Lie(
        {"$schema": "https://example.org/x", "type": "object", "required": ["a", "a"], "properties": {"a": {"type": ["integer", "null"], "not": {"const": 1}}}},
        "a: int | None", "'$schema' does not name a draft from 04 to 2020-12; it is read as 2020-12", "/$schema", {"a": 2}, {"a": 1},
    ),
    "limits_that_leave_nothing": of({"type": "string", "minLength": 3, "maxLength": 2}, "a: Annotated[Omissible[str], Field(max_length=2, min_length=3)] = None", "no value is valid: 'minLength' is greater than 'maxLength'", "", {}, "abc"),
    "types_that_exclude_each_other": Lie(
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}},
        "a: Any | None = None", "no value is valid: no type is left", "/properties/a", {}, {"a": "x"},
    ),
    "required_name_that_is_not_there": Lie(
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "ghost"]},
        "ghost: Any", UNDECLARED, "/required", {"a": "", "ghost": None}, {"a": ""},
    ),
    "required_name_that_may_not_be_there": Lie(
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["ghost"], "additionalProperties": False},
        "ghost: Any", UNDECLARED, "/required", {}, {"ghost": 1},
    ),
}  # fmt: skip

MISTAKES = {
    "null_for_a_list": ("/properties/a/enum", "'enum' is null; give it a value, or remove it"),
    "null_for_a_format": ("/properties/a/format", "'format' is null; give it a value, or remove it"),
    "required_name_that_may_not_be_there": (
        "/required",
        "'ghost' is required but not declared in 'properties', and 'additionalProperties: false' forbids other names;"
        " declare it, or remove it here",
    ),
}
"""Mistakes in a spec of the project. Where a tool is imported they are tolerated, and advice for its author."""
UNSATISFIABLE = {"required_name_that_may_not_be_there"}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.slow
def test_the_type_is_honest(name: str) -> None:
    lie = LIES[name]
    assert f"    {lie.field}\n" in module_text(lie.schema)
    model = input_model(lie.schema)
    with pytest.raises(ValidationError):
        model.model_validate(lie.refused)
    if name in UNSATISFIABLE:
        with pytest.raises(ValidationError):
            model.model_validate(lie.taken)
    else:
        assert model.model_validate(lie.taken).model_dump(mode="json", exclude_unset=True) == lie.taken


def with_output(name: str) -> dict[str, Any]:
    return {"name": name, "description": "Lies.", "inputSchema": {"type": "object"}, "outputSchema": LIES[name].schema}


def toolkit(folder: Path, *arguments: str) -> tuple[int, Any]:
    done = command_line.toolkit(folder, *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


def places(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(row["pointer"], row["message"]) for row in rows}


def import_outputs(project: Project, names: Iterable[str]) -> None:
    classes = ", ".join(f"{''.join(map(str.title, name.split('_')))}Output" for name in names)
    assert (
        command_line.python(project.root, f"from acme.generated import {classes}; print('imported')").stdout
        == "imported\n"
    )


@pytest.mark.slow
def test_lint_tells_and_generation_goes_on(tmp_path: Path) -> None:
    names = [name for name in LIES if name not in MISTAKES]
    project = Project(tmp_path, [with_output(name) for name in names])
    code, rows = toolkit(tmp_path, "lint")
    assert code == 1
    assert places(rows) == {
        (f"/tools/{index}/outputSchema{LIES[name].pointer}", LIES[name].finding) for index, name in enumerate(names)
    }
    project.generate()
    import_outputs(project, names)


@pytest.mark.slow
def test_mistakes_stop_own_specs_and_are_advice_for_imported_ones(tmp_path: Path) -> None:
    told = {(f"/tools/{index}/outputSchema{at}", message) for index, (at, message) in enumerate(MISTAKES.values())}
    project = Project(tmp_path, [with_output(name) for name in MISTAKES])
    for command in ("lint", "generate", "check"):
        code, answer = toolkit(tmp_path, command)
        assert (code, places(answer["problems"])) == (1, told)
    settings = (tmp_path / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{settings}[tool.toolkit.imports.tools]\ntools = "legacy.json"\n')
    imported = {"origin": {"kind": "tools", "name": "tools"}, "tools": [with_output(name) for name in MISTAKES]}
    project.write("acme/tools/tools.json", json.dumps(imported))
    assert toolkit(tmp_path, "lint") == (0, [])
    code, rows = toolkit(tmp_path, "lint", "--imported")
    assert (code, places(rows), len(rows)) == (1, told, len(told))
    project.generate()
    import_outputs(project, MISTAKES)


@pytest.mark.slow
def test_an_honest_schema_has_no_findings(tmp_path: Path) -> None:
    honest = {"type": "object", "properties": {"a": {"type": ["string", "null"], "description": "A.", "default": None}}}
    Project(tmp_path, [{"name": "honest", "description": "Is.", "inputSchema": honest, "outputSchema": honest}])
    linted = command_line.toolkit(tmp_path, "lint", "--project", ".", check=True)
    assert linted.stdout == "1 spec, 0 findings\n"
