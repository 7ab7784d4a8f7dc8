"""What ``make bench-check`` says about made-up figures: the verdict on each row, and the exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.check import compare
from benchmarks.results import Row, Run, Table
from tests.projects import REPOSITORY


def a_run(part: str, *rows: Row) -> Run:
    return Run({}, {part: [Table("table", "A table", rows)]})


def row(
    ratio: float | None,
    name: str = "row",
    *,
    ours: bool = True,
    at: float | None = None,
    tolerance: float | None = None,
) -> Row:
    return Row(name, 100.0, "ns", ratio, "base", at, ours, tolerance=tolerance)


# The part, its row in the committed run and now, and the verdict; the tolerance of the part is in the comment.
CASES: dict[str, tuple[str, Row | None, Row | None, str | None]] = {
    "the same": ("dumps", row(2.0), row(2.0), None),
    "a little more": ("dumps", row(2.0), row(2.39), None),  # 0.2
    "more": ("dumps", row(2.0), row(2.41), "worse"),
    "a little less": ("dumps", row(2.0), row(1.7), None),
    "less": ("dumps", row(2.0), row(1.66), "better"),
    "a part that varies": ("commands", row(2.0), row(2.9), None),  # 0.5
    "a row that varies": ("dumps", row(2.0), row(3.9, tolerance=1.0), None),
    "a row that varies, more": ("dumps", row(2.0), row(4.1, tolerance=1.0), "worse"),
    "instructions": ("instructions", row(2.0), row(2.05), None),  # 0.03
    "instructions, more": ("instructions", row(2.0), row(2.07), "worse"),
    "not measured any more": ("dumps", row(2.0), None, "missing"),
    "measured for the first time": ("dumps", None, row(2.0), "new"),
    "a peer got slower": ("dumps", row(2.0, ours=False), row(4.0, ours=False), None),
    "a peer is gone": ("dumps", row(2.0, ours=False), None, None),
    "a time without a ratio": ("dumps", row(None), row(None), None),
    "too short to compare": ("adversarial", row(2.0), row(None), None),
    "long enough to compare": ("adversarial", row(None), row(2.0), None),
    "not measured, without a ratio": ("dumps", row(None), None, "missing"),
    "another place on the curve": ("growth", row(2.0, at=10), row(2.0, at=100), "missing"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict(case: str) -> None:
    part, before, now, verdict = CASES[case]
    found = compare(a_run(part, *filter(None, [before])), a_run(part, *filter(None, [now])))
    assert [one.verdict for one in found][:1] == ([] if verdict is None else [verdict])


def test_only_parts_that_were_measured_are_compared() -> None:
    assert compare(a_run("dumps", row(2.0)), a_run("growth")) == []


def test_counted_instructions_decide_instead_of_times() -> None:
    def run(time: float, instructions: float) -> Run:
        tables = {"calls": [Table("text", "", (row(time),))], "instructions": [Table("text", "", (row(instructions),))]}
        return Run({}, tables)

    assert compare(run(2.0, 2.0), run(9.0, 2.01)) == []
    assert [str(one) for one in compare(run(2.0, 2.0), run(2.0, 2.5))] == ["worse    instructions/text/row: 2 -> 2.5"]


def test_the_bad_news_comes_first() -> None:
    before = a_run("dumps", row(2.0, "a"), row(2.0, "b"), row(2.0, "c"))
    now = a_run("dumps", row(1.0, "a"), row(4.0, "b"), row(1.0, "d"))
    assert [(one.verdict, one.row) for one in compare(before, now)] == [
        ("missing", "dumps/table/c"),
        ("worse", "dumps/table/b"),
        ("better", "dumps/table/a"),
        ("new", "dumps/table/d"),
    ]


@pytest.mark.parametrize(
    ("ratio", "code", "said"), [(4.0, 1, "worse    dumps/table/row: 2 -> 4"), (2.1, 0, "Nothing differs")]
)
def test_the_command_fails_if_something_got_worse(tmp_path: Path, ratio: float, code: int, said: str) -> None:
    before, now = tmp_path / "before.json", tmp_path / "now.json"
    a_run("dumps", row(2.0)).write(before)
    a_run("dumps", row(ratio)).write(now)
    command = [sys.executable, "-m", "benchmarks", "--from", str(now), "--check", str(before)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout
