"""The mypy plugin: exact lines for mistakes, and the same verdict as the overloads on every line of every case."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.projects import REPOSITORY
from tests.typing.checkers import Report, mypy_with_plugin
from tests.typing.conftest import CASES, MYPY_CASES

pytestmark = pytest.mark.xdist_group("typing")

ALL = [*CASES, *MYPY_CASES]
ONLY_WITH_THE_PLUGIN = "# only with the plugin"
"""Marks a right program that the overloads refuse."""


@pytest.fixture
def plain(report_of: Callable[[str], Report]) -> Report:
    return report_of("mypy")


@pytest.fixture
def plugged(report_of: Callable[[str], Report]) -> Report:
    return report_of("mypy with plugin")


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.stem)
def test_plugin_and_overloads_agree_on_every_line(plain: Report, plugged: Report, case: Path) -> None:
    first = first_lines_of_calls(case)
    source = case.read_text().splitlines()
    wrong = [
        {
            (first.get(line, line), source[first.get(line, line) - 1])
            for name, line in report.errors
            if name == case.name
        }
        for report in (plain, plugged)
    ]
    accepted = {(number, line) for number, line in wrong[0] if ONLY_WITH_THE_PLUGIN in line}
    assert wrong[0] - accepted == wrong[1]
    compared = {(case.name, number) for number in range(1, len(source) + 1)} - {(case.name, n) for n, _ in accepted}
    revealed = [{place: report.revealed.get(place) for place in compared} for report in (plain, plugged)]
    assert revealed[0] == revealed[1]


def at(report: Report, case: Path, line: int) -> list[str]:
    return [re.sub(r"  \[[\w-]+\]$", "", message) for message in report.errors.get((case.name, line), [])]


def first_lines_of_calls(case: Path) -> dict[int, int]:
    """Of calls that are written over several lines: the overloads report at the arguments, the plugin where the mistake is."""
    statements = [node for node in ast.walk(ast.parse(case.read_text())) if isinstance(node, ast.Expr)]
    return {n: call.lineno for call in statements for n in range(call.lineno, (call.end_lineno or call.lineno) + 1)}


@pytest.mark.parametrize("case", MYPY_CASES, ids=lambda case: case.stem)
def test_each_mistake_is_one_exact_line(plugged: Report, case: Path) -> None:
    problems = []
    for number, line in enumerate(case.read_text().splitlines(), start=1):
        wanted = re.search(r"# (errors?)(?:: (.+))?$", line)
        revealed = re.search(r"[#,] revealed: (.+)$", line)
        found = at(plugged, case, number)
        if revealed and plugged.revealed.get((case.name, number)) != revealed[1]:
            problems.append(f"{line.strip()}\n    revealed {plugged.revealed.get((case.name, number))}")
        if wanted is None and found or wanted and not found or wanted and wanted[2] and found != [wanted[2]]:
            problems.append(f"{line.strip()}\n    {found}")
    assert not problems, "\n".join(problems)


OF_THE_TOOLKIT = ("async_toolkit", "bound_handlers", "downstream_toolkit", "invoke_by_dynamic_name",
                  "invoke_by_literal_name", "policy_names", "tools_as_methods", "mistakes", "of_a_profile")  # fmt: skip


@pytest.mark.parametrize("case", [case for case in ALL if case.stem in OF_THE_TOOLKIT], ids=lambda case: case.stem)
def test_a_mistake_is_one_line_without_notes_and_of_readable_length(plugged: Report, case: Path) -> None:
    places = [place for place in plugged.errors if place[0] == case.name]
    assert places
    assert {place: plugged.errors[place] for place in places if len(plugged.errors[place]) > 1} == {}
    forgotten_await = 'Maybe you forgot to use "await"?'
    notes = [text for place, texts in plugged.notes.items() if place[0] == case.name for text in texts]
    assert [text for text in notes if text != forgotten_await] == []
    assert [text for place in places for text in plugged.errors[place] if len(text) > 200] == []


def test_the_documentation_shows_what_mypy_prints(tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "mypy.md").read_text(), re.DOTALL)
    file = tmp_path / "documented.py"
    file.write_text(program)
    report = mypy_with_plugin([file], tmp_path)
    shown = {n: line.partition("# error: ")[2] for n, line in enumerate(program.splitlines(), 1) if "# error: " in line}
    assert len(shown) == 7
    assert {line: [text] for line, text in shown.items()} == {line: at(report, file, line) for _, line in report.errors}
