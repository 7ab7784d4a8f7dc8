"""One set of warm checkers for all tests of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.guard.ways import guard_in
from tests.programs.cases import parse, prelude
from toolkit.runtime.programs.check.checkers import Checkers
from toolkit.runtime.programs.gate import ParsedProgram
from toolkit.runtime.programs.result import ProgramError
from toolkit.runtime.programs.settings import Checker
from toolkit.runtime.signatures.errors_stub import errors_stub

Check = Callable[..., tuple[ProgramError, ...]]


@pytest.fixture(scope="session")
def checkers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkers]:
    with guard_in("full", tmp_path_factory.mktemp("nothing"), mode="read-only") as guard:
        made = Checkers(guard, seconds=120)
        yield made
        made.close()


@pytest.fixture(scope="session")
def check(checkers: Checkers) -> Check:
    """Checks a program that has passed the gate."""

    def check(source: str, checker: Checker, *previous: str) -> tuple[ProgramError, ...]:
        program: ParsedProgram = parse(source)
        assert program.errors == ()
        return checkers.check(program, prelude(), errors_stub(), previous, checker)

    return check
