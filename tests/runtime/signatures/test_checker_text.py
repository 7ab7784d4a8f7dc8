"""What a type checker reads before a program: right programs pass it, wrong ones do not."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.typing.checkers import mypy
from toolkit import errors
from toolkit.errors import SetupError
from toolkit.generated import ListInput
from toolkit.generated.catalog import CATALOG
from toolkit.runtime.programs.check import ERRORS_STUB, write_prelude
from toolkit.runtime.programs.gate import ERROR_CLASSES

ALL = [CATALOG.signatures.of(name) for name in CATALOG.tools]

RIGHT = """
found: list[str] = tools.glob(pattern="*.py").paths
kind: str = (await atools.list(path=".")).entries[0].kind
tools.todowrite(todos=[{"content": "a", "status": "pending", "priority": 2}])
dumped: dict[str, object] = tools.read_file(path="a").model_dump()
text: str = tools.done(message="x").model_dump_json()
total: float = inputs.sizes[0] + inputs.limits["most"]
names: list[str | None] = inputs.names
folder: str = inputs.given.path
"""
WRONG = [
    "tools.raed_file(path='a')",
    "tools.read_file(pth='a')",
    "tools.read_file('a')",
    "tools.read_file(path=1)",
    "tools.read_file()",
    "tools.edit(path='a', old_string='b', new_string='c', expected_replacements=None)",
    "tools.todowrite(todos=[{'content': 'a', 'status': 'soon'}])",
    "tools.todowrite(todos=[{'content': 'a', 'status': 'pending', 'prioritty': 2}])",
    "tools.read_file(path='a').lines",
    "tools.read_file(path='a').total_lines + 1",
    "tools.webfetch(url='a').bytes.decode()",
    "atools.read_file(path='a').content",
    "inputs.size",
    "inputs.sizes.upper()",
    "inputs.given.pth",
    "typing_is_not_imported: Any = 1",
    "date.today()",
]
INPUTS: dict[str, object] = {
    "sizes": [1, 2.5],
    "limits": {"most": 3},
    "names": ["a", None],
    "given": ListInput(path="a"),
}
FIRST = "async def _program(tools: _Tools, atools: _AsyncTools, inputs: _Inputs) -> None:"


def test_right_programs_pass_and_wrong_ones_do_not(tmp_path: Path) -> None:
    before = write_prelude(ALL, INPUTS)
    lines = [*before.splitlines(), FIRST, *(f"    {line}" for line in (*RIGHT.splitlines(), *WRONG))]
    (tmp_path / "program.py").write_text("\n".join([*lines, ""]))
    found = mypy([tmp_path / "program.py"], tmp_path).errors
    first_wrong = len(lines) - len(WRONG) + 1
    assert {line for _, line in found} == set(range(first_wrong, len(lines) + 1))


def test_the_stub_of_the_errors_passes(tmp_path: Path) -> None:
    (tmp_path / "toolkit.pyi").write_text(ERRORS_STUB)
    assert mypy([tmp_path / "toolkit.pyi"], tmp_path).errors == {}


def test_the_stub_has_every_error_of_a_call_with_its_attributes() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.ToolkitError)]
    assert sorted(ERROR_CLASSES) == sorted(kind.__name__ for kind in kinds)
    namespace: dict[str, Any] = {}
    exec(ERRORS_STUB, namespace)
    made = {kind: kind("NOT_FOUND", "m") if kind is errors.ToolFailed else kind("m") for kind in kinds}
    for kind, error in made.items():
        stub = namespace[kind.__name__]
        declared = {name for base in stub.__mro__ for name in vars(base).get("__annotations__", {})}
        assert {*vars(error), "code", "retriable"} == declared
        assert [base.__name__ for base in stub.__mro__] == [base.__name__ for base in kind.__mro__]


def test_without_tools_and_inputs_it_is_still_a_module() -> None:
    namespace: dict[str, Any] = {}
    exec(write_prelude([]), namespace)
    assert {"_Tools", "_AsyncTools", "_Inputs"} <= set(namespace)


def test_only_the_tools_that_are_asked_for_are_in_it() -> None:
    text = write_prelude([CATALOG.signatures.of("done")])
    assert "def done(self, *, message: _b.str) -> DoneOutput: ..." in text
    assert "read_file" not in text


class Point(BaseModel):
    x: int
    next: Point | None = None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "_b.str"),
        (True, "_b.bool"),
        (None, "None"),
        ([], "_b.list[_t.Any]"),
        ([1, "a"], "_b.list[_t.Any]"),
        ([1, 2.0, None], "_b.list[_b.float | None]"),
        ([None], "_b.list[_t.Any]"),
        (("a",), "_b.list[_b.str]"),
        ({}, "_b.dict[_b.str, _t.Any]"),
        ({"a": [{"b": 1}], "c": []}, "_b.dict[_b.str, _t.Any]"),
        ({"a": [[1]], "b": [[2]]}, "_b.dict[_b.str, _b.list[_b.list[_b.int]]]"),
        ({1: 2}, "_t.Any"),
        (object(), "_t.Any"),
        ([Point(x=1), Point(x=2)], "_b.list[Point]"),
    ],
)
def test_inputs_are_typed_by_their_values(value: object, text: str) -> None:
    assert write_prelude([], {"given": value}).splitlines()[-1] == f"    given: {text}"


def test_a_model_among_the_inputs_brings_its_class() -> None:
    assert "class Point(_Model):\n    x: _b.int\n    next: Point | None\n" in write_prelude([], {"given": Point(x=1)})


def test_a_very_deep_input_is_anything_below_some_depth() -> None:
    value: object = 1
    for _ in range(5_000):
        value = [value]
    assert write_prelude([], {"deep": value}).splitlines()[-1].endswith("_b.list[_t.Any]]]]]]]]")


@pytest.mark.parametrize("name", ["a-b", "class", "_private", "", "1st"])
def test_an_input_needs_a_name_that_a_program_can_write(name: str) -> None:
    with pytest.raises(SetupError, match="needs another name: a program reads it as"):
        write_prelude([], {name: 1})
