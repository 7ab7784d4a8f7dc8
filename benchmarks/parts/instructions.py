"""Instructions of the processor for calls and imports: nearly the same in every run, whatever else the machine does.

The names of tables and rows are those of the parts ``calls`` and ``imports``, so that the comparison with the committed run
can judge by them instead of by time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.counters import Counter, find_counter
from benchmarks.limit import LIMIT, PLAIN_LIMIT
from benchmarks.parts.calls import TEXT_WAYS, VALUE_WAYS
from benchmarks.parts.imports import BASE, FIRST_CALL, INTERPRETER, PROGRAMS
from benchmarks.results import Row, Table, compared

FEW: Final = 20
MANY: Final = 220
"""Both beyond the first calls, which load and prepare things."""
NONE_WORKS: Final = "Neither `perf stat -e instructions:u` nor valgrind works here: instructions are not counted."


def measure(*, full: bool) -> Iterator[Table]:
    counter = find_counter()
    if counter is None:
        yield Table("text", "Instructions of one call", (), notes=(NONE_WORKS,))
        return
    notes = (f"counted by {counter.name}",)
    text, values = (TEXT_WAYS, VALUE_WAYS) if full else (TEXT_WAYS[:1], ())
    counts = _count_calls(counter, [LIMIT, *text, PLAIN_LIMIT, *values])
    for name, base, ways in (("text", LIMIT, text), ("values", PLAIN_LIMIT, values)):
        rows = compared({way: counts[way] for way in (base, *ways)}, base, "instructions")
        yield Table(name, f"One call of `add`, {name}: instructions", rows, notes=notes)
    if full:
        yield Table("import", "Importing: instructions", _count_imports(counter), notes=notes)


def _count_calls(counter: Counter, names: Sequence[str]) -> dict[str, float]:
    """One counted program for all measurements, or one for each if the counter cannot tell processes apart."""
    wanted = [(name, calls) for name in names for calls in (FEW, MANY)]
    program = [sys.executable, "-m", "benchmarks.counted"]
    if counter.tells_processes:
        done = counter.run([*program, *(word for name, calls in wanted for word in (name, str(calls)))])
        found = [done.instructions[int(process)] for process in done.output.split()]
    else:
        found = [counter.run([*program, name, str(calls)]).instructions[0] for name, calls in wanted]
    totals = dict(zip(wanted, found, strict=True))
    return {name: (totals[name, MANY] - totals[name, FEW]) / (MANY - FEW) for name in names}


def _count_imports(counter: Counter) -> tuple[Row, ...]:
    names = (INTERPRETER, BASE, "import toolkit", FIRST_CALL)
    found = {name: counter.run([sys.executable, "-c", PROGRAMS[name]]).instructions[0] for name in names}
    bare = found.pop(INTERPRETER)
    return compared({name: float(value - bare) for name, value in found.items()}, BASE, "instructions")
