"""Compares a run with the committed one: what got worse, what got better, what is no longer measured.

Ratios are compared, never times. Where both runs counted instructions, those decide, because they hardly vary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.parts import PARTS
from benchmarks.results import Row, Run

Verdict = Literal["worse", "better", "missing", "new"]
FAILS: Final[frozenset[Verdict]] = frozenset({"worse", "missing"})
COUNTED_ELSEWHERE: Final = {"calls": "instructions", "imports": "instructions"}
"""Parts whose rows have a namesake among the counted instructions."""


@dataclass(frozen=True)
class Difference:
    verdict: Verdict
    row: str
    before: float | None
    now: float | None

    def __str__(self) -> str:
        match self.verdict:
            case "missing":
                return f"missing  {self.row}: the committed run has it"
            case "new":
                return f"new      {self.row}: the committed run does not have it; `make bench-keep` adds it"
        return f"{self.verdict:<8} {self.row}: {self.before:.3g} -> {self.now:.3g}"

    @property
    def fails(self) -> bool:
        return self.verdict in FAILS


def compare(before: Run, now: Run) -> list[Difference]:
    """The differences in the parts that were measured now, the bad ones first."""
    old = {key: row for key, row in before.rows() if _is_compared(row) and _part(key) in now.parts}
    new = {key: row for key, row in now.rows() if _is_compared(row)}
    counted = {key for key in old if key in new and _part(key) == "instructions"}
    found = list(_differences(old, new, counted))
    return sorted(found, key=lambda one: (not one.fails, one.verdict, one.row))


def _differences(old: dict[str, Row], new: dict[str, Row], counted: Collection[str]) -> Iterator[Difference]:
    for key, row in old.items():
        if key not in new:
            yield Difference("missing", key, row.ratio, None)
            continue
        if _namesake(key) in counted:
            continue
        before, now, tolerance = row.ratio or 0, new[key].ratio or 0, PARTS[_part(key)].tolerance
        if now > before * (1 + tolerance):
            yield Difference("worse", key, before, now)
        elif now * (1 + tolerance) < before:
            yield Difference("better", key, before, now)
    yield from (Difference("new", key, None, row.ratio) for key, row in new.items() if key not in old)


def _is_compared(row: Row) -> bool:
    """What others do may change without us; what has no ratio depends on the machine."""
    return row.ours and row.ratio is not None


def _part(key: str) -> str:
    return key.partition("/")[0]


def _namesake(key: str) -> str:
    part, _, rest = key.partition("/")
    return f"{COUNTED_ELSEWHERE.get(part, part + ' not counted')}/{rest}"
