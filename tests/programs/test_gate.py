"""The gate on the syntax tree: what a program names, and what it refuses."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from pathlib import Path

import pytest

from tests.programs.cases import ProgramCase, parse, read_cases
from tests.projects import run
from toolkit.runtime.programs.gate import ALLOWED_IMPORTS, ToolUse, parse_program
from toolkit.runtime.programs.result import MAX_ERRORS

WRONG = read_cases("wrong_programs.txt")
REFUSED = [case for case in WRONG if parse(case.source).errors]


def test_the_table_has_enough_programs_for_the_gate() -> None:
    assert len(REFUSED) >= 35


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_it_is_refused_with_a_message_on_its_line(case: ProgramCase) -> None:
    errors = parse(case.source).errors
    assert {error.line for error in errors} == set(case.errors)
    for line, text in case.errors.items():
        assert any(error.message.startswith(text) for error in errors if error.line == line), errors
    assert all(error.kind in ("gate", "syntax") and error.column >= 1 for error in errors)


@pytest.mark.parametrize("case", read_cases("right_programs.txt"), ids=lambda case: case.name)
def test_a_right_program_passes(case: ProgramCase) -> None:
    assert parse(case.source).errors == ()


def test_it_finds_every_tool_with_its_place() -> None:
    program = parse(
        "def read(path):\n    return tools.read_file(path=path)\n\n"
        "é = lambda: tools.grep\nfirst, second = await atools.list(), f'{tools.glob(pattern=\"*\")}'\n"
    )
    assert program.errors == ()
    assert program.uses[:3] == (
        ToolUse("read_file", 2, 12, False),
        ToolUse("grep", 4, 13, False),
        ToolUse("list", 5, 23, True),
    )
    assert program.uses[3].tool == "glob"


def test_a_use_has_the_name_on_the_wire() -> None:
    program = parse_program("tools.get_issue(number=1)", {"get_issue": "github.get-issue"}, ALLOWED_IMPORTS)
    assert [use.tool for use in program.uses] == ["github.get-issue"]


def test_a_context_can_allow_more_imports() -> None:
    assert parse("import numpy.linalg\n").errors
    assert parse_program("import numpy.linalg\n", {}, ALLOWED_IMPORTS | {"numpy"}).errors == ()


def test_a_name_of_ones_own_may_be_that_of_a_builtin_that_is_not_available() -> None:
    assert parse("vars = {'a': 1}\nprint(vars['a'])\n").errors == ()


STRANGE = {
    "nul": ("x = 1\ny = '\0'\n", 2, "the program contains a NUL character"),
    "lone_surrogate": ("x = '\ud800'\n", 1, "the program contains a lone surrogate"),
    "deep_parentheses": ("(" * 5000 + ")" * 5000, 1, "too many nested parentheses"),
    "deep_operators": ("-" * 100_000 + "1", 0, "the program is nested too deeply"),
    "long_sum": ("+".join(["1"] * 100_000), 0, "the program is nested too deeply"),
    "long_chain": ("a" + ".b" * 100_000, 0, "the program is nested too deeply"),
    "huge_number": ("9" * 5000, 1, "Exceeds the limit"),
    "million_lines": ("x = 1\n" * 1_000_000, 0, "the program has 6000000 characters; at most"),
    "open_string": ("x = 'abc\n", 1, "unterminated string literal"),
    "open_braces": ("{" * 95 + "x for", 1, "'{' was never closed"),
    "byte_order_mark": ("\ufeffx = 1", 1, "invalid non-printable character"),
    "wrong_indentation": ("if 1:\nx = 1", 2, "expected an indented block"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_text_is_an_error_and_nothing_is_raised(name: str) -> None:
    source, line, message = STRANGE[name]
    program = parse(source)
    [error] = program.errors
    assert (error.line, error.kind) == (line, "syntax")
    assert error.message.startswith(message)
    assert program.uses == () and ast.dump(program.tree) == ast.dump(ast.Module([], []))


def test_of_many_errors_the_first_are_shown_and_the_others_counted() -> None:
    errors = parse("".join(f"tools.unknown_{number}()\n" for number in range(5000))).errors
    assert [error.line for error in errors[:MAX_ERRORS]] == list(range(1, MAX_ERRORS + 1))
    assert errors[MAX_ERRORS:] == (errors[-1],)
    assert errors[-1].message == f"and {5000 - MAX_ERRORS} more errors, here and below"


def test_what_python_warns_about_in_a_program_is_not_shown_here() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert parse("x = '\\d' is 1\n").errors == ()
    assert seen == []


def test_the_modules_that_may_be_imported_exist(tmp_path: Path) -> None:
    ours = sorted(ALLOWED_IMPORTS - {"typing_extensions"})
    code = "import importlib, json, sys; [importlib.import_module(name) for name in json.loads(sys.argv[1])]"
    run([sys.executable, "-S", "-c", code, json.dumps(ours)], tmp_path)
