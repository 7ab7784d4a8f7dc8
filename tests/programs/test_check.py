"""The type check: the tables, places, sessions, and what mypy is told to ignore."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.guard.ways import guard_in
from tests.programs.cases import Check, ProgramCase, parse, prelude, read_cases
from toolkit import ProgramSettings, Toolkit
from toolkit.errors import SetupError, ToolFailed
from toolkit.runtime.programs.check import ProgramChecker, find_mypy
from toolkit.runtime.programs.gate import ALLOWED_IMPORTS, parse_program

WRONG = [case for case in read_cases("wrong_programs.txt") if not parse(case.source).errors]
RIGHT = read_cases("right_programs.txt")


def test_the_tables_have_enough_programs() -> None:
    assert len(read_cases("wrong_programs.txt")) >= 100
    assert len(WRONG) >= 60
    assert len(RIGHT) >= 55


@pytest.mark.sample
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_it_is_refused_with_a_message_on_its_line(case: ProgramCase, check: Check) -> None:
    errors = check(case.source)
    assert {error.line for error in errors} == set(case.errors)
    for line, text in case.errors.items():
        assert any(error.message.startswith(text) for error in errors if error.line == line), errors
    assert {error.kind for error in errors} == {"type"}


@pytest.mark.sample
@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_a_right_program_passes(case: ProgramCase, check: Check) -> None:
    assert check(case.source) == ()


def test_a_place_is_that_of_the_program(check: Check) -> None:
    source = (
        'text = """\nnot indented\n"""; print(text.upper())\n'
        'row = {"a": 1, "b": [1, text]}; print(tools.list().entires)\n'
        "if row:\n    print(tools.list().entires)\n"
    )
    errors = check(source)
    assert [(error.line, error.column) for error in errors] == [(4, 39), (6, 11)]
    assert str(errors[1]) == 'line 6: ListOutput has no attribute "entires"; did you mean "entries"?'


def test_a_program_sees_what_the_earlier_ones_of_its_session_left(check: Check) -> None:
    earlier = ("import json\nfound = tools.grep(pattern='x').matches\n", "def first():\n    return found[0]\n")
    assert check("print(json.dumps(first().path), found[1].line)\n", *earlier) == ()
    [error] = check("print(found[0].lines)\n", *earlier)
    assert str(error) == 'line 1: GrepOutputMatch has no attribute "lines"; did you mean "line"?'


def test_a_mistake_of_an_earlier_program_is_not_reported_again(check: Check) -> None:
    assert check("print(1)\n", "print(tools.list().nothing)\n") == ()


def test_a_program_is_checked_after_one_that_raised(check: Check) -> None:
    earlier = "found = tools.list()\nraise ValueError\n"
    [error] = check("print(found.nothing)\n", earlier)
    assert error.message.startswith('ListOutput has no attribute "nothing"; it has path, entries')


def test_a_program_that_the_checker_does_not_reach_is_refused(check: Check) -> None:
    [error] = check("print(1)\n", "while True:\n    pass\n")
    assert str(error).startswith("the program was not checked")


PRELUDE_OF_OTHER_TOOLS = """\
from __future__ import annotations
import typing as _t
class UpdateOutput:
    count: int
class _Tools(_t.Protocol):
    def update(self, *, values: dict[str, int]) -> UpdateOutput: ...
    def sorted(self, *, key: int) -> UpdateOutput: ...
class _AsyncTools(_t.Protocol):
    async def update(self, *, values: dict[str, int]) -> UpdateOutput: ...
class _Inputs:
    pass
"""
WRONG_CALLS_OF_OTHER_TOOLS = {
    "tools.update(values=3)": 'the argument "values" of update must be dict[str, int], not int',
    "tools.update(values={'a': 'b'})": 'the argument "values" of update must be dict[str, int]',
    "await atools.update(values=[])": 'the argument "values" of update must be dict[str, int], not list',
    "order = {'a': 1}\nmax(order, key=order.get), tools.sorted(key='a')": 'the argument "key" of sorted must be int',
    "def update(x: int) -> None: ...\nupdate(y=1)": 'update has no argument "y"',
}


@pytest.mark.parametrize("source", WRONG_CALLS_OF_OTHER_TOOLS)
def test_a_tool_may_have_the_name_of_what_programs_do_with_their_own_values(
    source: str, checker: ProgramChecker
) -> None:
    program = parse_program(source, {"update": "update", "sorted": "sorted"}, ALLOWED_IMPORTS)
    [error] = checker.check(program, PRELUDE_OF_OTHER_TOOLS)
    assert error.line == source.count("\n") + 1
    assert error.message.startswith(WRONG_CALLS_OF_OTHER_TOOLS[source])


def test_without_a_checker_nothing_is_checked(toolkit: Toolkit) -> None:
    failed = toolkit.run_program("print(tools.list().nothing)\n", checker="off")
    assert (failed.ran, [error.kind for error in failed.errors]) == (True, ["run"])


def test_auto_is_mypy_where_it_is_installed(toolkit: Toolkit) -> None:
    wrong = "print(tools.list().nothing)\n"
    found = toolkit.run_program(wrong, checker="auto").errors
    assert found == toolkit.run_program(wrong, checker="mypy").errors
    assert [error.kind for error in found] == ["type"]


@pytest.mark.parametrize("name", ["ty", "pyrefly", "pyre", ""])
def test_a_checker_that_does_not_exist_is_an_error_of_the_setup(name: Any, toolkit: Toolkit) -> None:
    message = f"checker must be one of auto, mypy, off, not {name!r}"
    with pytest.raises(SetupError, match=f"^{message}$"):
        toolkit.run_program("not python", checker=name)
    with pytest.raises(SetupError, match=f"^programs: {message}$"):
        ProgramSettings(checker=name)


def test_where_mypy_is_not_installed_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_mypy.cache_clear()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(SetupError, match=r"^checking programs needs mypy: pip install 'typed-toolkit\[programs\]'; "):
        find_mypy()


def test_checks_of_several_threads_do_not_mix(check: Check) -> None:
    found: dict[int, str] = {}

    def work(number: int) -> None:
        [error] = check(f"print(missing_{number})\n")
        found[number] = error.message

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f'the name "missing_{number}" is not defined' for number in range(6)}


def test_closed_checkers_refuse(tmp_path: Path) -> None:
    with guard_in("full", tmp_path, mode="read-only") as guard:
        checker = ProgramChecker(guard)
        checker.close()
        with pytest.raises(ToolFailed, match="the toolkit has been closed"):
            checker.check(parse("print(1)"), prelude())


@pytest.mark.parametrize("step", [".a", "()", "[0]"])
def test_a_chain_that_is_too_deep_to_be_written_is_still_judged(check: Check, step: str) -> None:
    """CPython compiles it, and `ast.unparse` of it would end in a RecursionError."""
    errors = check("import re\nre" + step * 900)
    assert errors and {error.line for error in errors} == {2}
    assert all(len(error.message) < 200 for error in errors), errors
