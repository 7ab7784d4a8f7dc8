"""``FailureReason`` lists exactly the reasons that the toolkit raises."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.projects import REPOSITORY
from toolkit import ToolFailed
from toolkit.errors import FAILURE_REASONS

HTTP_STATUS = "HTTP_"
"""How the one open family of reasons begins: an imported API fails with the status of its answer."""


@functools.cache
def modules() -> dict[Path, ast.Module]:
    """The product's modules that raise ``ToolFailed``, parsed."""
    files = [file for name in ("toolkit", "codegen") for file in (REPOSITORY / name).rglob("*.py")]
    texts = {file: file.read_text() for file in files if file != REPOSITORY / "toolkit" / "errors.py"}
    return {file: ast.parse(text) for file, text in texts.items() if ToolFailed.__name__ in text}


def name_called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def raisers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """What takes a reason, and at which place: ``ToolFailed``, and functions that pass a parameter of theirs to it."""
    yield ToolFailed.__name__, 0
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in function.args.args]
            skip = names[:1] == ["self"] or names[:1] == ["cls"]
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and name_called(call) == ToolFailed.__name__ and call.args:
                    reason = call.args[0]
                    if isinstance(reason, ast.Name) and reason.id in names:
                        yield function.name, names.index(reason.id) - skip


def literals(value: ast.expr) -> Iterator[str]:
    """The texts that an expression may be, as far as they are written there."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from literals(value.body)
        yield from literals(value.orelse)
    elif isinstance(value, ast.JoinedStr) and isinstance(value.values[0], ast.Constant):
        yield str(value.values[0].value)


def reasons_in(tree: ast.Module) -> Iterator[str]:
    places = set(raisers(tree))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for name, place in places:
                if name_called(call) == name and len(call.args) > place:
                    yield from literals(call.args[place])


@pytest.mark.slow
def test_every_reason_that_is_raised_is_listed() -> None:
    raised = {
        (reason, str(file.relative_to(REPOSITORY))) for file, tree in modules().items() for reason in reasons_in(tree)
    }
    assert len(raised) > 50, "the search itself works"
    known = {*FAILURE_REASONS, HTTP_STATUS}
    assert sorted((reason, file) for reason, file in raised if reason not in known) == []


def test_every_listed_reason_is_used() -> None:
    texts = {
        node.value
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [reason for reason in FAILURE_REASONS if reason not in texts] == []


def test_the_search_follows_functions_that_pass_a_reason_on() -> None:
    tree = ast.parse(
        "class A:\n"
        "    def fail(self, words, reason):\n"
        "        return ToolFailed(reason, words)\n"
        "    def run(self):\n"
        "        raise self.fail('x', 'ODD' if self else 'EVEN')\n"
        "raise errors.ToolFailed(f'HTTP_{status}', 'x')\n"
    )
    assert sorted(reasons_in(tree)) == ["EVEN", HTTP_STATUS, "ODD"]
