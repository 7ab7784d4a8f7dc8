"""Compares a run with the committed one: what got worse, what got better, what is no longer measured.

Ratios of our own rows are compared, never times; what others do may change without us. Where both runs counted
instructions, those decide, because they hardly vary.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    old = {key: row for key, row in before.rows() if row.ours and _part(key) in now.parts}
    new = {key: row for key, row in now.rows() if row.ours}
    counted = {key for key in old if key in new and _part(key) == "instructions"}
    found = [
        one
        for key in {**old, **new}
        if _namesake(key) not in counted
        for one in _judge(key, old.get(key), new.get(key))
    ]
    return sorted(found, key=lambda one: (not one.fails, one.verdict, one.row))


def _judge(key: str, old: Row | None, new: Row | None) -> Iterator[Difference]:
    if new is None:
        yield Difference("missing", key, None, None)
    elif old is None:
        yield Difference("new", key, None, new.ratio)
    elif old.ratio is not None and new.ratio is not None:  # what is too short to compare has no ratio
        tolerance = PARTS[_part(key)].tolerance if new.tolerance is None else new.tolerance
        if new.ratio > old.ratio * (1 + tolerance):
            yield Difference("worse", key, old.ratio, new.ratio)
        elif new.ratio * (1 + tolerance) < old.ratio:
            yield Difference("better", key, old.ratio, new.ratio)


def _part(key: str) -> str:
    return key.partition("/")[0]


def _namesake(key: str) -> str:
    part, _, rest = key.partition("/")
    return f"{COUNTED_ELSEWHERE.get(part, part + ' not counted')}/{rest}"
