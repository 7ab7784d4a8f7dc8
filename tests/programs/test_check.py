"""The type check: the tables under every checker, places, sessions, and what a checker is told to ignore."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from tests.guard.ways import guard_in
from tests.programs.cases import Check, ProgramCase, parse, prelude, read_cases
from tests.projects import REPOSITORY, run
from toolkit.errors import SetupError, ToolFailed
from toolkit.runtime.programs.check import Checkers, find_checker
from toolkit.runtime.programs.gate import ALLOWED_IMPORTS, parse_program
from toolkit.runtime.programs.result import Checker
from toolkit.runtime.signatures import errors_stub

CHECKERS = ("mypy", "ty", pytest.param("pyrefly", marks=pytest.mark.whole))
WRONG = [case for case in read_cases("wrong_programs.txt") if not parse(case.source).errors]
RIGHT = read_cases("right_programs.txt")


def test_the_tables_have_enough_programs() -> None:
    assert len(read_cases("wrong_programs.txt")) >= 100
    assert len(WRONG) >= 60
    assert len(RIGHT) >= 55


@pytest.mark.sample
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_it_is_refused_with_a_message_on_its_line(case: ProgramCase, checker: Checker, check: Check) -> None:
    errors = check(case.source, checker)
    assert {error.line for error in errors} == set(case.errors)
    for line, text in case.errors.items():
        assert any(error.message.startswith(text) for error in errors if error.line == line), errors
    assert {error.kind for error in errors} == {"type"}


@pytest.mark.sample
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_a_right_program_passes(case: ProgramCase, checker: Checker, check: Check) -> None:
    assert check(case.source, checker) == ()


@pytest.mark.parametrize("checker", ["mypy", "ty", "pyrefly"])
def test_a_place_is_that_of_the_program(checker: Checker, check: Check) -> None:
    source = (
        'text = """\nnot indented\n"""; print(text.upper())\n'
        'row = {"a": 1, "b": [1, text]}; print(tools.list().entires)\n'
        "if row:\n    print(tools.list().entires)\n"
    )
    errors = check(source, checker)
    assert [(error.line, error.column) for error in errors] == [(4, 39), (6, 11)]
    assert str(errors[1]) == 'line 6: ListOutput has no attribute "entires"; did you mean "entries"?'


@pytest.mark.parametrize("checker", ["mypy", "ty", "pyrefly"])
def test_a_program_sees_what_the_earlier_ones_of_its_session_left(checker: Checker, check: Check) -> None:
    earlier = ("import json\nfound = tools.grep(pattern='x').matches\n", "def first():\n    return found[0]\n")
    assert check("print(json.dumps(first().path), found[1].line)\n", checker, *earlier) == ()
    [error] = check("print(found[0].lines)\n", checker, *earlier)
    assert str(error) == 'line 1: GrepOutputMatch has no attribute "lines"; did you mean "line"?'


@pytest.mark.parametrize("checker", ["mypy", "ty", "pyrefly"])
def test_a_mistake_of_an_earlier_program_is_not_reported_again(checker: Checker, check: Check) -> None:
    assert check("print(1)\n", checker, "print(tools.list().nothing)\n") == ()


@pytest.mark.parametrize("checker", ["mypy", "ty", "pyrefly"])
def test_a_program_is_checked_after_one_that_raised(checker: Checker, check: Check) -> None:
    earlier = "found = tools.list()\nraise ValueError\n"
    [error] = check("print(found.nothing)\n", checker, earlier)
    assert error.message.startswith('ListOutput has no attribute "nothing"; it has path, entries')


@pytest.mark.parametrize("checker", ["mypy", "ty"])  # pyrefly also reads what is never reached
def test_a_program_that_the_checker_does_not_reach_is_refused(checker: Checker, check: Check) -> None:
    [error] = check("print(1)\n", checker, "while True:\n    pass\n")
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


@pytest.mark.parametrize("checker", ["mypy", "ty", "pyrefly"])
@pytest.mark.parametrize("source", WRONG_CALLS_OF_OTHER_TOOLS)
def test_a_tool_may_have_the_name_of_what_programs_do_with_their_own_values(
    source: str, checker: Checker, checkers: Checkers
) -> None:
    program = parse_program(source, {"update": "update", "sorted": "sorted"}, ALLOWED_IMPORTS)
    [error] = checkers.check(program, PRELUDE_OF_OTHER_TOOLS, errors_stub(), (), checker)
    assert error.line == source.count("\n") + 1
    assert error.message.startswith(WRONG_CALLS_OF_OTHER_TOOLS[source])


def test_without_a_checker_nothing_is_checked(check: Check) -> None:
    assert check("print(tools.list().nothing)\n", "off") == ()


def test_auto_is_mypy_where_it_is_installed(check: Check) -> None:
    assert find_checker("auto").name == "mypy"
    assert check("print(tools.list().nothing)\n", "auto") == check("print(tools.list().nothing)\n", "mypy")


def test_a_checker_that_does_not_exist_is_an_error_of_the_setup(check: Check) -> None:
    with pytest.raises(SetupError, match="checker must be one of auto, mypy, ty, pyrefly, off, not 'pyre'"):
        check("print(1)\n", "pyre")  # type: ignore[arg-type]


WITHOUT_SITE_PACKAGES = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from toolkit.errors import SetupError
from toolkit.runtime.programs.check import find_checker
for choice in ("auto", "mypy", "ty"):
    try:
        find_checker(choice)
    except SetupError as error:
        print(error)
"""


def test_where_no_checker_is_installed_the_error_says_what_to_install(tmp_path: Path) -> None:
    auto, mypy, ty = run([sys.executable, "-I", "-S", "-c", WITHOUT_SITE_PACKAGES], tmp_path).stdout.splitlines()
    assert auto.startswith(
        "checking programs needs a type checker: pip install 'typed-toolkit[programs]' (mypy), or ty"
    )
    assert mypy == "the type checker 'mypy' is not installed: pip install 'typed-toolkit[programs]'"
    assert ty == "the type checker 'ty' is not installed: pip install ty"


def test_checks_of_several_threads_do_not_mix(check: Check) -> None:
    found: dict[int, str] = {}

    def work(number: int) -> None:
        [error] = check(f"print(missing_{number})\n", "mypy")
        found[number] = error.message

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f'the name "missing_{number}" is not defined' for number in range(6)}


def test_closed_checkers_refuse(tmp_path: Path) -> None:
    with guard_in("full", tmp_path, mode="read-only") as guard:
        checkers = Checkers(guard)
        checkers.close()
        with pytest.raises(ToolFailed, match="the toolkit has been closed"):
            checkers.check(parse("print(1)"), prelude(), errors_stub(), (), "mypy")
