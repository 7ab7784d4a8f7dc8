"""Programs that are made to hurt the checker: each is refused, nothing is left running, and the next check works."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guard.ways import guard_in
from tests.programs.cases import parse, prelude
from toolkit.errors import ToolFailed
from toolkit.guard import CommandLimits, ProcessGuard
from toolkit.runtime.programs.check import ProgramChecker
from toolkit.runtime.programs.result import MAX_ERRORS, MAX_MESSAGE, ProgramError

GENERIC = "from typing import TypeVar\nT = TypeVar('T')\ndef twice(value: T) -> tuple[T, T]: return (value, value)\n"
ENDLESS = f"{GENERIC}x = {'twice(' * 50}1{')' * 50}\nx.foo\n"
"""The type has 2**50 parts: no checker comes to the end of it."""
RIGHT = "print(tools.list().path)\n"
WRONG = "print(tools.list().nothing)\n"


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[ProcessGuard]:
    with guard_in("full", tmp_path, mode="read-only", limits=CommandLimits(memory=1 << 30)) as made:
        yield made


def check(checker: ProgramChecker, source: str) -> tuple[ProgramError, ...]:
    return checker.check(parse(source), prelude())


def descendants() -> dict[int, str]:
    """The processes below this one: pid -> command line."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: dict[int, str] = {}
    pending = [os.getpid()]
    while pending:
        parent = pending.pop()
        for pid in [pid for pid, its_parent in parents.items() if its_parent == parent]:
            pending.append(pid)
            try:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


Started = Callable[[], dict[int, str]]


@pytest.fixture
def started() -> Started:
    """The processes that are alive and were started after this."""
    before = set(descendants())
    return lambda: {pid: command for pid, command in descendants().items() if pid not in before}


def checker_processes(processes: dict[int, str]) -> list[int]:
    return [pid for pid, command in processes.items() if "inside_checker.py" in command]


def test_a_check_without_end_is_ended_and_the_program_refused(guard: ProcessGuard, started: Started) -> None:
    checker = ProgramChecker(guard, seconds=2)
    [error] = check(checker, ENDLESS)
    assert str(error).startswith("the program was not checked: mypy ")
    assert error.kind == "type"
    assert checker_processes(started()) == []


def test_a_check_that_needs_too_much_memory_is_ended(tmp_path: Path, started: Started) -> None:
    limits = CommandLimits(memory=48 << 20)
    with guard_in("full", tmp_path, mode="read-only", limits=limits) as guard:
        checker = ProgramChecker(guard, seconds=120)
        [error] = check(checker, RIGHT)
        assert "used more than 48 MiB of memory" in error.message
        assert checker_processes(started()) == []


HOSTILE = {
    "nested_lambdas": "x = " + "(lambda f: " * 40 + "1" + ")" * 40 + "\nx.foo.bar\nunknown\n",
    "nested_dicts": "x = " + "{1: " * 90 + "1" + "}" * 90 + "\nx.foo\n",
    "long_literal": "x = '" + "a" * 100_000 + "'\nx.foo\n",
    "long_names": f"{'n' * 50_000}.foo\n",
    "many_mistakes": "missing\n" * 3000,
    "wide_union": f"def f(x: {' | '.join(f'tuple[int, list[set[Literal[{i}]]]]' for i in range(40))}): return x.foo\n"
    "from typing import Literal\n",
    "text_that_looks_like_an_answer": "x: 'a\\n{\"line\": 1}' = 5\nprint('\\0\\0\\0\\2').foo\nmissing\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strange_program_is_refused_with_errors_of_a_bounded_size(name: str, checker: ProgramChecker) -> None:
    errors = check(checker, HOSTILE[name])
    assert errors
    assert len(errors) <= MAX_ERRORS + 1
    assert all(len(error.message) <= MAX_MESSAGE + 3 for error in errors)


def test_the_stub_of_the_toolkit_and_files_of_the_host_are_all_that_a_checker_finds(
    guard: ProcessGuard, tmp_path: Path
) -> None:
    """A module next to the workspace is not there for the checker, so nothing that a tool wrote changes its verdict."""
    (tmp_path / "json.py").write_text("def dumps() -> None: ...\n")
    checker = ProgramChecker(guard)
    source = "import json\nprint(json.dumps([1]).upper())\n"
    assert check(checker, source) == ()
    checker.close()


@pytest.mark.parametrize("part", ["checker", "all"])
def test_a_checker_that_is_killed_is_started_again(guard: ProcessGuard, part: str, started: Started) -> None:
    checker = ProgramChecker(guard)
    assert check(checker, RIGHT) == ()
    killed = checker_processes(started()) if part == "checker" else list(started())
    assert killed
    for pid in killed:
        _kill(pid)
    first = check(checker, WRONG)
    assert first, "never a pass"
    assert check(checker, RIGHT + "\n") == ()
    checker.close()
    assert checker_processes(started()) == []


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_closing_ends_a_check_that_is_running(guard: ProcessGuard, started: Started) -> None:
    checker = ProgramChecker(guard, seconds=300)
    check(checker, RIGHT)
    idle = set(checker_processes(started()))
    ended: list[str] = []

    def work() -> None:
        try:
            check(checker, ENDLESS)
        except ToolFailed as error:
            ended.append(error.message)

    thread = threading.Thread(target=work)
    thread.start()
    while idle.issuperset(checker_processes(started())):  # each check has a process of its own
        time.sleep(0.01)
    checker.close()
    thread.join()
    assert ended == ["the toolkit has been closed"]
    assert checker_processes(started()) == []
