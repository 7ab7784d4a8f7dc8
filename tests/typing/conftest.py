"""One run of each checker over all cases, for all tests that compare its report with what they expect."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, Report

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.py"))
MYPY_CASES = sorted((HERE / "mypy_cases").glob("*.py"))
"""What only mypy reads, with the plugin and without."""


@pytest.fixture(scope="session")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    @cache
    def check(checker: str) -> Report:
        folder = tmp_path_factory.mktemp(checker)
        files = [*CASES, *MYPY_CASES] if checker.startswith("mypy") else CASES
        return CHECKERS[checker]([Path(shutil.copy(case, folder)) for case in files], folder)

    return check
