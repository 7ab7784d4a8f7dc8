"""Public names: what checkers see is what run time gives; what a first program needs stands apart from the rest."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

import toolkit
from tests.projects import REPOSITORY

FACES = sorted(
    file.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for file in (REPOSITORY / "toolkit").rglob("*.py")
    if "__getattr__, __dir__ = lazy_exports(" in file.read_text()
)


def names_for_checkers(module: str) -> set[str]:
    file = importlib.import_module(module).__file__
    assert file is not None
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.asname or "" for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names}


@pytest.mark.parametrize("module", ["toolkit.generated", *FACES])
def test_every_name_that_checkers_see_can_be_imported(module: str) -> None:
    loaded = importlib.import_module(module)
    # A generated package keeps the long list in a module of its own.
    names = names_for_checkers("toolkit.generated._exports" if module == "toolkit.generated" else module)
    assert names >= set(loaded.__all__)
    for name in names:
        assert getattr(loaded, name) is not None
    assert not hasattr(loaded, "nothing_of_that_name")


def test_what_a_first_program_needs_is_listed_and_the_rest_is_in_modules() -> None:
    listed = [name for name in dir(toolkit) if not name.startswith("_")]
    modules = [name for name in listed if f"toolkit.{name}" in re.findall(r"``(toolkit\.\w+)", toolkit.__doc__ or "")]
    assert set(listed) == {*vars(toolkit)["__all__"], *modules}
    assert len(vars(toolkit)["__all__"]) <= 20
    elsewhere = {name for module in modules for name in dir(importlib.import_module(f"toolkit.{module}"))}
    assert names_for_checkers("toolkit") - set(listed) <= elsewhere


def test_generated_code_finds_everything_behind_its_one_door() -> None:
    from toolkit import generated_support

    for name in vars(generated_support)["__all__"]:
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
