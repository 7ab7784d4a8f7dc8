"""The part of ``make corpus`` that compares generated models with JSON Schema and fills the columns, for every shared spec."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.corpus.columns import Figures, reasons, table
from tests.corpus.meaning import DECIDED, Difference, Tally, judge_calls, measure
from tests.corpus.specs import FILES, rows

_AT_ONCE = 40


def report(corpus: Path, every: int = 1) -> tuple[list[str], list[str]]:
    """The lines, and the goals that are missed.

    The lines are two tables of the files (verdicts, and the columns), the reasons for ``Any``, then each class of difference
    with its smallest example.
    """
    made = [f"{'file':<20} {'specs':>6} {'refused':>8} {'judged':>8} {'dumped':>8} {'differ':>7} {'agreement':>10}"]
    whole = Tally()
    figures: dict[str, Figures] = {}
    for file in FILES:
        tally = everything(list(rows(corpus, file))[::every])
        made.append(_row(file, tally))
        figures[file] = tally.figures
        whole.add(tally)
    judged, differing = judge_calls(corpus, every)
    calls = f"{judged} published calls judged, {len(differing)} with a verdict that differs from the published one"
    columns = [*table({**figures, "all": whole.figures}), "", *reasons(whole.figures.meaning)]
    return [*made, _row("all", whole), calls, "", *columns, "", *differences(whole)], whole.figures.missed()


def everything(found: list[dict[str, Any]]) -> Tally:
    """The same as ``measure``, on all cores."""
    tally = Tally()
    measure_all = partial(measure, with_columns=True)
    with ProcessPoolExecutor() as pool:
        for part in pool.map(
            measure_all, [found[start : start + _AT_ONCE] for start in range(0, len(found), _AT_ONCE)]
        ):
            tally.add(part)
    return tally


def differences(tally: Tally) -> list[str]:
    counts = Counter(difference.sort for difference in tally.differences)
    made = []
    for sort, count in counts.most_common():
        least = min((d for d in tally.differences if d.sort == sort), key=_size)
        made.append(f"{count:>6}  {sort}: {DECIDED.get(sort, 'NOT DECIDED')}")
        made.append(f"        {least.key} ({least.made_by}) {json.dumps(least.value)[:200]} -> {least.seen[:200]}")
        made.append(f"        schema {json.dumps(least.schema)[:400]}")
    return made or ["no differences"]


def _size(difference: Difference) -> int:
    return len(json.dumps(difference.schema)) + len(json.dumps(difference.value))


def _row(name: str, tally: Tally) -> str:
    refused = sum(tally.refused.values())
    return (
        f"{name:<20} {tally.specs:>6} {refused:>8} {tally.judged:>8} {tally.dumped:>8} {len(tally.differences):>7}"
        f" {tally.agreement:>9.4f}%"
    )
