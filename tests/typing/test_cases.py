"""The static promises as programs, checked by four type checkers. The expectations are comments on the line.

``# revealed: T`` after a ``reveal_type``, ``# error`` where the program is wrong; every other line must be clean.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, Report

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))


@pytest.fixture(scope="session")
def reports() -> dict[str, Report]:
    return {}


@pytest.fixture
def report(
    request: pytest.FixtureRequest, reports: dict[str, Report], tmp_path_factory: pytest.TempPathFactory
) -> Report:
    name: str = request.param
    if name not in reports:
        folder = tmp_path_factory.mktemp(name)
        reports[name] = CHECKERS[name]([Path(shutil.copy(case, folder)) for case in CASES], folder)
    return reports[name]


# The report of a checker is made once in each process; the groups ask for one process each.
@pytest.mark.parametrize(
    "report",
    [pytest.param(name, marks=pytest.mark.xdist_group(f"cases of {name}")) for name in CHECKERS],
    indirect=True,
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(report: Report, case: Path) -> None:
    problems = []
    for number, line in enumerate(case.read_text().splitlines(), start=1):
        place = (case.name, number)
        wanted = re.search(r"# revealed: (.+)$", line)
        errors = report.errors.get(place, [])
        if wanted and report.revealed.get(place) != wanted[1]:
            problems.append(
                f"line {number}: revealed {report.revealed.get(place)!r}, wanted {wanted[1]!r}: {line.strip()}"
            )
        if line.endswith("# error") and not errors:
            problems.append(f"line {number}: no error: {line.strip()}")
        if not line.endswith("# error") and errors:
            problems.append(f"line {number}: {errors}: {line.strip()}")
    assert not problems, "\n".join(problems)


def test_cases_hold_right_and_wrong_programs() -> None:
    text = "".join(case.read_text() for case in CASES)
    assert text.count("# error") > 40
    assert text.count("# revealed: ") >= 25
