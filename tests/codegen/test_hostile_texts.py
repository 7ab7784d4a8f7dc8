"""Texts of specs in generated text: each is found again, character by character, in every place that shows it."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import command_line
from tests.modules import load_module, module_text
from tests.projects import Project, run
from toolkit.codegen.package.literals import docstring
from toolkit.errors import SpecError

TEXTS = [
    'ends in three quotes"""',
    '"""',
    '""""',
    '"""""',
    '""""""',
    'ends in one quote"',
    'ends in two quotes""',
    'ends in a backslash and a quote\\"',
    'ends in a backslash and three quotes\\"""',
    'ends in two backslashes and three quotes\\\\"""',
    "ends in a backslash\\",
    "ends in two backslashes\\\\",
    'has """ in the middle',
    'begins a line\n"""',
    'ends a line"""\nand goes on',
    "'''",
    "\\N{BULLET} \\x41 \\u0041 \\101 \\n",
    "a form feed\x0cin the middle",
    "a form feed at the end\x0c",
    "separators\x1c\x1d\x1e\x85\u2028\u2029between words",
    'separators before quotes\u2028"""',
    "\x1b]0;title\x07\x9b31m\x7f\u202e\u200b",
    "\x00",
    "carriage\rreturn",
    "tab\tand tab\t",
    "{braces} {{ 7 }} %s %(x)s ${X}",
    "\N{PILE OF POO} \U000e0041",
]


def found_in(source: str) -> str:
    """What a reader of the docstring in ``source`` gets."""
    (statement,) = ast.parse(f"class X:\n{source}\n").body
    text = ast.get_docstring(statement)  # type: ignore[arg-type]
    assert text is not None
    return text


def as_docstring(text: str) -> str:
    """The text without what readers of docstrings take away: space around it and at the ends of lines."""
    return inspect.cleandoc("\n".join(line.rstrip() for line in text.strip().split("\n")))


@pytest.mark.every_row
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_docstring_says_what_the_text_says(text: str) -> None:
    assert found_in(docstring(text, "    ")) == as_docstring(text)


@given(st.text(st.sampled_from('"\\\n ax\x0c\r\u2028'), max_size=12))
def test_quotes_and_backslashes_in_any_order(text: str) -> None:
    assert found_in(docstring(f"x{text}", "    ")) == as_docstring(f"x{text}")


def schema_with(text: str) -> dict[str, Any]:
    return {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {
            "plain": {"type": "string", "title": text, "description": text, "default": text, "examples": [text]},
            "choice": {"enum": [text, "other"], "description": text},
            "constant": {"const": text},
            "many": {"type": "array", "items": {"type": "string"}, "default": [text]},
            "inner": {"type": "object", "description": text, "properties": {text: {"const": text}}},
        },
        "required": ["constant"],
    }


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_models_say_and_accept_what_the_spec_says(text: str) -> None:
    source = module_text(schema_with(text), {"type": "array", "description": text, "items": {"enum": [text]}}, text)
    classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    for name in ("XInput", "XInputInner", "XOutput"):
        assert ast.get_docstring(classes[name]) == as_docstring(text)
    module = load_module(source)
    made = module.XInput.model_validate({"constant": text, "choice": text, "inner": {text: text}})
    assert (made.plain, made.many, made.constant, made.choice) == (text, [text], text, text)
    assert made.model_dump(by_alias=True, exclude_unset=True)["inner"] == {text: text}
    assert module.XOutput.model_validate([text]).root == [text]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A package with one tool for each text, in every place that holds texts."""
    tools = [
        {"name": f"tool_{index}", "title": text, "description": text, "inputSchema": schema_with(text)}
        for index, text in enumerate(TEXTS)
    ]
    made = Project(tmp_path_factory.mktemp("texts"), tools)
    made.generate()
    return made


@pytest.mark.slow
def test_methods_of_a_toolkit_say_what_the_spec_says(project: Project) -> None:
    (tools,) = (
        node
        for node in ast.parse((project.output / "facade.py").read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Tools"
    )
    methods = {node.name: node for node in tools.body if isinstance(node, ast.FunctionDef)}
    for index, text in enumerate(TEXTS):
        words = ast.get_docstring(methods[f"tool_{index}"])
        expected = as_docstring(text) or f"Runs the tool 'tool_{index}'."
        assert words is not None and words.startswith(expected)
        described = " ".join(text.split())
        assert f":param plain: {described}".rstrip() in words
    listed = json.loads((project.output / "manifest.json").read_text())["tools"]
    assert [row["description"] for row in sorted(listed, key=lambda row: int(row["name"][5:]))] == TEXTS


@pytest.mark.slow
def test_the_package_loads_and_type_checks(project: Project) -> None:
    code = """
import importlib, pkgutil, acme.generated as package
for found in pkgutil.walk_packages(package.__path__, "acme.generated."):
    importlib.import_module(found.name)
"""
    command_line.python(project.root, code)
    (project.root / "acme/py.typed").touch()
    done = run([sys.executable, "-m", "mypy", "--strict", "-p", "acme.generated"], project.root, check=False)
    assert done.stdout.startswith("Success"), done.stdout


def test_a_lone_surrogate_in_a_file_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path, [{"name": "x", "description": "\ud800", "inputSchema": {"type": "object"}}])
    with pytest.raises(SpecError, match="lone surrogate"):
        project.generate()


FUNCTIONS = """
from toolkit import tool

@tool(description="half \\ud800")
def half(a: int) -> int:
    return a
"""


@pytest.mark.slow
def test_a_lone_surrogate_in_a_function_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path, functions=["acme.maths"])
    project.write("acme/maths.py", FUNCTIONS)
    with pytest.raises(SpecError, match=r"acme\.maths: .*lone surrogate"):
        project.generate()
