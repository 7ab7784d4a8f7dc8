"""The static promises as programs, checked by four type checkers. The expectations are comments on the line.

``# revealed: T`` after a ``reveal_type``, ``# error`` where the program is wrong; every other line must be clean.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, Report
from tests.typing.conftest import CASES

pytestmark = pytest.mark.xdist_group("typing")


ROWS = [pytest.param(name, marks=pytest.mark.whole) if name == "pyright" else name for name in CHECKERS]
"""``make test`` leaves out the slowest: it has pyright read test_words.py and the calls of ``tests/corpus/test_proof.py``."""


@pytest.fixture(params=ROWS)
def report(request: pytest.FixtureRequest, report_of: Callable[[str], Report]) -> Report:
    return report_of(request.param)


@pytest.mark.every_row
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
