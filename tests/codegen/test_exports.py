"""What a generated package exports: all types of its tools, loaded when they are used, each under one meaning."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from typing import Any

from tests.projects import REPOSITORY, Project, many_tools

ROW = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


def nested(name: str, *, inputs: str = "filter", outputs: str = "rows") -> dict[str, Any]:
    """A tool with one object in its input and one in its output, under these properties."""
    return {
        "name": name,
        "inputSchema": {"type": "object", "properties": {inputs: ROW}},
        "outputSchema": {"type": "object", "properties": {outputs: {"type": "array", "items": ROW}}},
    }


def defined_in(module: Path) -> set[str]:
    """The classes and aliases of a model module."""
    found = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            found.add(ast.unparse(target))
    return found


def exported(project: Project) -> set[str]:
    done = project.python("import acme.generated, json; print(json.dumps(acme.generated.__all__))")
    names = json.loads(done.stdout)
    assert len(names) == len(set(names))
    return set(names)


def test_every_type_of_a_tool_is_exported(tmp_path: Path) -> None:
    project = Project(tmp_path, [nested("find"), *many_tools(40)])
    project.generate()
    types = {name for file in (project.output / "models").glob("*.py") for name in defined_in(file)}
    assert {"FindInputFilter", "FindArgsFilter", "FindOutputRow"} <= types
    assert types <= exported(project)
    done = project.python(
        "from acme.generated import FindArgsFilter, FindInputFilter, FindOutputRow\n"
        "import acme.generated, acme.generated.models.find as find\n"
        "assert FindOutputRow is find.FindOutputRow and FindArgsFilter is find.FindArgsFilter\n"
        "assert {'FindInputFilter', 'bind'} <= set(dir(acme.generated))\n"
        "print(FindOutputRow(id=1), FindInputFilter(id=2))"
    )
    assert done.stdout == "id=1 id=2\n"


def test_types_of_included_tools_are_exported() -> None:
    acme = importlib.import_module("tests.downstream.acme.generated")
    types = {name for file in (REPOSITORY / "generated" / "models").glob("*.py") for name in defined_in(file)}
    assert "GrepOutputMatch" in types
    assert types <= set(acme.__all__)


def test_a_nested_type_whose_name_has_another_meaning_is_left_out(tmp_path: Path) -> None:
    find = nested("find", outputs="input")  # its nested FindOutputInput is also the input of find_output
    project = Project(tmp_path, [find, nested("find_output")])
    assert {"FindInputFilter", "FindOutputOutputRow"} <= generated_exports(project)
    source = "from acme.generated import FindOutputInput; print(FindOutputInput.__module__)"
    assert project.python(source).stdout == "acme.generated.models.find_output\n"

    find = nested("find", outputs="output_rows")  # both tools have a nested FindOutputOutputRow
    project = Project(tmp_path, [find, nested("find_output")])
    names = generated_exports(project)
    assert "FindInputFilter" in names and "FindOutputOutputRow" not in names
    for module in ("find", "find_output"):
        project.python(f"from acme.generated.models.{module} import FindOutputOutputRow")


def test_the_toolkit_class_wins_over_a_nested_type(tmp_path: Path) -> None:
    project = Project(tmp_path, [nested("find")], **{"class": "FindOutputRow"})
    assert "FindOutputRow" in generated_exports(project)
    source = "from acme.generated import FindOutputRow; print(FindOutputRow.__module__)"
    assert project.python(source).stdout == "acme.generated.facade\n"


def test_importing_the_package_loads_nothing_for_its_tools(tmp_path: Path) -> None:
    project = Project(tmp_path, many_tools(40))
    project.generate()
    few = (project.output / "__init__.py").read_bytes()
    source = "import acme.generated, sys; acme.generated.ToolName; print(*(n for n in sys.modules if 'acme.' in n))"
    assert project.python(source).stdout.split() == ["acme.generated", "acme.generated.names"]
    project = Project(tmp_path, many_tools(60))
    project.generate()
    assert (project.output / "__init__.py").read_bytes() == few


def generated_exports(project: Project) -> set[str]:
    project.generate()
    return exported(project)
