"""Checked programs: what a check, a start and one call from inside cost, beside a plain subprocess, ``invoke`` and Monty."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import open_monty
from benchmarks.results import Row, Table
from benchmarks.timing import descendants_cpu_ms, least_wall
from toolkit import (
    JsonObject,
    ProgramResult,
    ProgramSession,
    ProgramSettings,
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    create_agent_toolkit,
)
from toolkit.errors import SetupError
from toolkit.guard.process.tier import pick_tier

IN_A_SANDBOX: Final = "inside_checker.py"
MONTY: Final = "pydantic-monty"

WRONG: Final = """
total = 0
names = []
for entry in tools.glob(pattern="**/*.txt").paths:
    file = tools.read_file(path=entry)
    total += file.line_count
    if "x" in file.content:
        names.append(file.path)
found = tools.grep(pattern="x", include="*.txt")
print(total, len(found.matches))
names.sort()
file.lines
"""
"""Ten lines and a mistake: nothing runs, so only the check is measured. The same for Monty, which has no ``tools``."""
WRONG_FOR_MONTY: Final = WRONG.replace("tools.", "").replace(".paths", "['paths']").replace("file.lines", "file + 1")
MONTY_STUBS: Final = """
from typing import Any
class ReadFileOutput:
    path: str
    content: str
    line_count: int
class GrepOutput:
    matches: list[str]
def glob(*, pattern: str) -> dict[str, Any]: ...
def read_file(*, path: str) -> ReadFileOutput: ...
def grep(*, pattern: str, include: str) -> GrepOutput: ...
"""

PLAIN: Final = "subprocess.run, python -c pass"
PREPARED: Final = "run_program, interpreter prepared"
AT_ONCE: Final = "run_program, at once after another one"
FIRST: Final = "run_program, the first of a toolkit"
IN_SESSION: Final = "session.run, after the first"
PAUSE: Final = 1.5
"""Seconds between two programs, as a model needs them and more: the next interpreter is ready then."""

ARGUMENTS: Final = {"done": JsonObject({"message": "x"}), "read_file": JsonObject({"path": "a.txt"})}
NOTHING: Final = "a program that does nothing"
CALLS: Final = 50
"""In one loop: short enough that some loop is undisturbed."""


def measure(*, full: bool) -> Iterator[Table]:
    choice = pick_tier("full", "auto")
    if choice.name != "full":
        note = f"no full sandbox here, so no program runs: {choice.reason}"
        yield Table("check", "Checking a program", (), notes=(note,))
        return
    yield measure_checks(rounds=10 if full else 1, attempts=3 if full else 1)
    yield measure_starts(rounds=10 if full else 1, pause=PAUSE if full else 0)
    yield measure_calls(rounds=100 if full else 1, calls=CALLS if full else 5)


def open_toolkit(stack: ExitStack) -> Toolkit:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    policy = SecurityPolicy(default="allow")
    settings = ProgramSettings(calls=1_000_000)
    context = ToolkitContext(workspace, policy, state_dir=folder / "state", programs=settings)
    return stack.enter_context(create_agent_toolkit(context))


def must_run(result: ProgramResult) -> None:
    if not result.ok:
        raise AssertionError(f"the program did not run: {result.errors}")


# -- the check ---------------------------------------------------------------------------------------------------------


def measure_checks(rounds: int, attempts: int) -> Table:
    """CPU time of mypy's process, and of what it starts; wall time in brackets."""
    rows: list[Row] = []
    notes: list[str] = []
    try:
        rows += _checks_of_mypy(rounds, attempts)
    except SetupError as error:
        notes.append(str(error))
    rows += _checks_of_monty(rounds, notes)
    title = "Checking a program of ten lines with a mistake: CPU time of the checker, wall time in brackets"
    return Table("check", title, tuple(rows), notes=tuple(notes))


def _checks_of_mypy(rounds: int, attempts: int) -> Iterator[Row]:
    cold: list[tuple[float, float]] = []
    warm: list[tuple[float, float]] = []
    again: list[float] = []
    for _ in range(attempts):
        with ExitStack() as stack:
            toolkit, numbers = open_toolkit(stack), count()

            def check(text: str, toolkit: Toolkit = toolkit) -> float:
                start = time.perf_counter()
                result = toolkit.run_program(text, checker="mypy")
                if result.ran or not result.errors:
                    raise AssertionError("mypy found nothing")
                return (time.perf_counter() - start) * 1000

            wall = check(f"{WRONG}# {next(numbers)}")
            before = descendants_cpu_ms(IN_A_SANDBOX)
            cold.append((before, wall))
            walls = [check(f"{WRONG}# {next(numbers)}") for _ in range(rounds)]
            # The clock of /proc counts in hundredths of a second, so the rounds are measured together.
            warm.append(((descendants_cpu_ms(IN_A_SANDBOX) - before) / rounds, min(walls)))
            again.append(min(check(f"{WRONG}# 0") for _ in range(3)))
    for name, found in (("cold", cold), ("warm", warm)):
        cpu, wall = (min(times) for times in zip(*found, strict=True))
        yield Row(f"mypy, {name}", cpu, "ms", detail=f"{wall:.0f} ms")
    yield Row("mypy, the same program again", min(again), "ms", detail="wall")


def _checks_of_monty(rounds: int, notes: list[str]) -> Iterator[Row]:
    with ExitStack() as stack:
        pool, error = open_monty(stack)
        if pool is None:
            notes.append(f"{MONTY} is not installed: {error}")
            return
        # It checks in its own process, which stays alive.
        walls = []
        before = 0.0
        for number in range(rounds + 1):
            start = time.perf_counter()
            with pool.checkout(type_check=True, type_check_stubs=MONTY_STUBS) as session:
                _must_refuse(session, f"{WRONG_FOR_MONTY}# {number}")
            walls.append((time.perf_counter() - start) * 1000)
            before = before or descendants_cpu_ms("monty")
        cpu = (descendants_cpu_ms("monty") - before) / rounds
        yield Row(f"{MONTY}, cold", before, "ms", ours=False, detail=f"{walls[0]:.0f} ms")
        yield Row(f"{MONTY}, warm", cpu, "ms", ours=False, detail=f"{min(walls[1:]):.0f} ms")


def _must_refuse(session: Any, source: str) -> None:
    try:
        session.feed_run(source)
    except Exception as error:
        if type(error).__name__ == "MontyTypingError":
            return
        raise
    raise AssertionError(f"{MONTY} found nothing")


# -- the start ---------------------------------------------------------------------------------------------------------


def measure_starts(rounds: int, pause: float) -> Table:
    """Wall time, without a check: most of it is waiting for a process."""
    notes: list[str] = []
    with ExitStack() as stack:
        toolkit = open_toolkit(stack)
        session = stack.enter_context(toolkit.program_session())
        contenders: dict[str, Callable[[], object]] = {
            PLAIN: lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            IN_SESSION: lambda: must_run(session.run("1 + 1", checker="off")),
        }
        pool, error = open_monty(stack)
        if pool is None:
            notes.append(f"{MONTY} is not installed: {error}")
        else:
            contenders[MONTY] = lambda: _run_monty(pool, "1 + 1", {})
        walls = least_wall(contenders, rounds=rounds)
        walls[PREPARED], walls[AT_ONCE] = _start_prepared(toolkit, rounds, pause)
    walls[FIRST] = sorted(_start_first() for _ in range(min(rounds, 3)))
    base = walls[PLAIN][0]
    rows = [
        Row(name, times[0], "ms", times[0] / base, PLAIN, ours=name not in (PLAIN, MONTY),
            detail=f"median {times[len(times) // 2]:.1f}", tolerance=1.0)
        for name, times in walls.items()
    ]  # fmt: skip
    notes.append(
        "Monty interprets a part of Python, in a process that waits for it; the kernel does not confine that process."
    )
    return Table("start", "The program `1 + 1`, not checked, wall time", tuple(rows), notes=tuple(notes))


def _start_prepared(toolkit: Toolkit, rounds: int, pause: float) -> tuple[list[float], list[float]]:
    prepared, at_once = [], []
    for _ in range(rounds):
        time.sleep(pause)
        prepared.append(_time_program(toolkit))
        at_once.append(_time_program(toolkit))
    return sorted(prepared), sorted(at_once)


def _start_first() -> float:
    with ExitStack() as stack:
        return _time_program(open_toolkit(stack))


def _time_program(toolkit: Toolkit) -> float:
    start = time.perf_counter()
    must_run(toolkit.run_program("1 + 1", checker="off"))
    return (time.perf_counter() - start) * 1000


def _run_monty(pool: Any, source: str, functions: dict[str, object]) -> object:
    with pool.checkout() as session:
        return session.feed_run(source, external_lookup=functions)


# -- one call ----------------------------------------------------------------------------------------------------------


def measure_calls(rounds: int, calls: int) -> Table:
    """Wall time of one call: of each loop, the start of the program is taken off."""
    notes: list[str] = []
    rows: list[Row] = []
    with ExitStack() as stack:
        toolkit = open_toolkit(stack)
        session = stack.enter_context(toolkit.program_session())
        pool, error = open_monty(stack)
        if pool is None:
            notes.append(f"{MONTY} is not installed: {error}")
        for tool, arguments in ARGUMENTS.items():
            contenders = _callers(toolkit, session, tool, arguments, calls)
            if pool is not None:
                contenders[f"{MONTY}, over invoke"] = _monty_caller(pool, toolkit, tool, arguments, calls)
            rows += _call_rows(tool, least_wall(contenders, rounds=rounds), calls)
    title = f"One call, wall time, least of {rounds} loops of {calls}"
    return Table("calls", title, tuple(rows), notes=tuple(notes))


def _callers(
    toolkit: Toolkit, session: ProgramSession, tool: str, arguments: JsonObject, calls: int
) -> dict[str, Callable[[], object]]:
    call = _written_call(tool, arguments)
    loop = f"for _ in range({calls}):\n    tools.{call}\n"
    together = f"import asyncio\nawait asyncio.gather(*[atools.{call} for _ in range({calls})])\nNone"

    def invoke() -> None:
        for _ in range(calls):
            toolkit.invoke(tool, arguments)

    return {
        "invoke": invoke,
        "from a program": lambda: must_run(session.run(loop, checker="off")),
        "from a program, at the same time": lambda: must_run(session.run(together, checker="off")),
        NOTHING: lambda: must_run(session.run("None", checker="off")),
    }


def _monty_caller(pool: Any, toolkit: Toolkit, tool: str, arguments: JsonObject, calls: int) -> Callable[[], object]:
    """Monty has no tools of its own, so its function is a call of ours."""

    def function(**given: object) -> object:
        return toolkit.invoke(tool, JsonObject(given)).content.model_dump()

    loop = f"for _ in range({calls}):\n    {_written_call(tool, arguments)}\n"
    return lambda: _run_monty(pool, loop, {tool: function})


def _written_call(tool: str, arguments: JsonObject) -> str:
    return f"{tool}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _call_rows(tool: str, walls: dict[str, list[float]], calls: int) -> Iterator[Row]:
    empty = walls.pop(NOTHING)[0]
    each = {
        name: 1000 * (times[0] - (empty if name.startswith("from") else 0)) / calls for name, times in walls.items()
    }
    base = f"{tool}, invoke"
    for name, value in each.items():
        is_ours = name != "invoke" and not name.startswith(MONTY)
        yield Row(f"{tool}, {name}", value, "us", value / each["invoke"], base, ours=is_ours, tolerance=1.0)
    yield Row(f"{tool}, from a program, in addition", each["from a program"] - each["invoke"], "us")
