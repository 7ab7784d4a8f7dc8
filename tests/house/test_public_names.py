"""Public names: what checkers see is what run time gives; what a first program needs stands apart from the rest."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.util import find_spec

import pytest

import toolkit
from tests.projects import REPOSITORY

FACES = sorted(
    file.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for file in (REPOSITORY / "toolkit").rglob("*.py")
    if "\n    __getattr__, __dir__ = lazy_exports(" in file.read_text() and file.stem != "lazy_exports"
)
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFERENCE = REPOSITORY / "docs" / "reference"


def names_for_checkers(module: str) -> set[str]:
    file = importlib.import_module(module).__file__
    assert file is not None
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.asname or "" for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def names_that_the_docs_import() -> set[tuple[str, str]]:
    """Each name with the module that a page, an example or a docstring of ours imports it from."""
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    blocks = [block for page in pages for block in FENCE.findall(page.read_text())]
    blocks += [file.read_text() for file in (REPOSITORY / "examples").rglob("*.py")]
    written = re.compile(r"^[ >.]*from (toolkit[\w.]*) import (\([^)]*\)|[^#\n]*)", re.MULTILINE)
    found = [one for block in blocks for one in written.findall(block)]
    docstrings = [file.read_text() for file in (REPOSITORY / "toolkit").rglob("*.py")]
    found += [one for text in docstrings for one in re.findall(r">>> from (toolkit[\w.]*) import (.*)", text)]
    return {
        (module, name.partition(" as ")[0].strip(" ."))
        for module, names in found
        for name in names.strip("()").replace("\n", " ").split(",")
        if name.strip(" .")
    }


@pytest.mark.parametrize("module", FACES)
def test_run_time_and_checkers_agree_on_every_name(module: str) -> None:
    loaded = importlib.import_module(module)
    names = names_for_checkers(module)
    assert set(loaded.__all__) == names
    assert names <= set(dir(loaded))
    for name in names:
        assert getattr(loaded, name) is not None
    assert not hasattr(loaded, "nothing_of_that_name")


def test_every_name_of_a_generated_package_can_be_imported() -> None:
    names = names_for_checkers("toolkit.generated._exports")
    assert names >= set(listed_in("toolkit.generated"))
    for name in names:
        assert getattr(toolkit.generated, name) is not None


def test_what_the_docs_import_is_listed() -> None:
    imported = names_that_the_docs_import()
    assert {("toolkit", name) for name in ("run", "Approve", "Driver")} < imported
    lists = {module: set(dir(importlib.import_module(module))) for module, _ in imported}
    unlisted = [(module, name) for module, name in imported if name not in lists[module]]
    assert [one for one in unlisted if find_spec(".".join(one)) is None] == [], "nor are they modules"


def test_the_docstring_names_only_what_there_is() -> None:
    assert toolkit.__doc__ is not None
    for name in re.findall(r"``toolkit\.(\w+)``|``(\w+)``", toolkit.__doc__):
        assert "".join(name) in dir(toolkit)
    for name in dir(toolkit):
        if name not in LISTED and not name.startswith("_"):
            assert f"``toolkit.{name}``" in toolkit.__doc__, "a module that nobody hears of"


def test_every_name_is_in_the_reference() -> None:
    shown: set[str] = set(listed_in("toolkit.errors"))
    for page in REFERENCE.glob("*.md"):
        text = page.read_text()
        shown.update(
            name for module in re.findall(r"^::: names (\S+)$", text, re.MULTILINE) for name in listed_in(module)
        )
        shown.update(re.findall(r"^::: (?!names )[\w.]*?(\w+)$", text, re.MULTILINE))
    assert [name for name in LISTED if name not in shown] == []


def test_public_classes_show_no_internals() -> None:
    policy = toolkit.SecurityPolicy(default="deny")
    assert {name for name in dir(policy) if name[0] != "_"} == {
        "bindings",
        "default",
        "explain",
        "load",
        "rules",
        "source",
        "tools",
    }
    for kind, internals in {
        toolkit.Toolkit: ("over",),
        toolkit.AsyncToolkit: ("over",),
        toolkit.ToolContext: ("watched", "user_records", "tool_texts"),
    }.items():
        assert [name for name in internals if hasattr(kind, name)] == []


def listed_in(module: str) -> list[str]:
    loaded = importlib.import_module(module)
    return list(getattr(loaded, "__all__", None) or [name for name in dir(loaded) if not name.startswith("_")])


LISTED = listed_in("toolkit")


def test_generated_code_finds_everything_behind_its_one_door() -> None:
    from toolkit import generated_support

    for name in listed_in("toolkit.generated_support"):
        assert getattr(generated_support, name) is not None


@pytest.mark.parametrize("package", ["generated", "tests/downstream/acme/generated"])
def test_generated_code_imports_from_its_one_door_and_from_itself(package: str) -> None:
    for file in (REPOSITORY / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not [alias for alias in node.names if alias.name.startswith("toolkit")], file
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("toolkit"):
                stable = {"toolkit.generated_support", "toolkit"}
                included = (node.module or "").startswith("toolkit.generated.")
                assert node.module in stable or included, file
                if node.module == "toolkit":
                    assert [alias.name for alias in node.names] == ["generated_support"], file


def test_the_version_stands_in_one_place() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in text and f'"{toolkit.__version__}"' not in text
