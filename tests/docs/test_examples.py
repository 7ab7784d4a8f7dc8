"""The examples in docstrings run, and the targets that the README and `make help` name exist."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from types import ModuleType

import pytest

import toolkit
from tests.projects import REPOSITORY, run

README = (REPOSITORY / "README.md").read_text()


def modules() -> list[str]:
    return [
        found.name
        for found in pkgutil.walk_packages(toolkit.__path__, "toolkit.")
        if not found.name.endswith("__main__")
    ]


@pytest.mark.slow
def test_docstrings_run() -> None:
    failed = {name: failed for name in ["toolkit", *modules()] if (failed := failed_examples(name))}
    assert failed == {}


def failed_examples(name: str) -> int:
    """How many examples of a module fail; doctest prints them."""
    module: ModuleType = importlib.import_module(name)
    return doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed


def test_the_two_commands_of_the_readme_are_targets() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z-]+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_make_help_lists_every_target() -> None:
    shown = run(["make", "-s", "help"], REPOSITORY).stdout
    wanted = [
        "setup",
        "run",
        "quick",
        "test",
        "test-all",
        "fuzz",
        "mutants",
        "corpus",
        "generate",
        "check-generated",
        "typecheck",
        "lint",
        "bench",
        "bench-check",
        "bench-keep",
        "stress",
        "docs",
    ]
    assert [line.split()[1] for line in shown.splitlines()][1 : len(wanted) + 1] == wanted
