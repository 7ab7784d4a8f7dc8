"""Measures CPU time of contenders interleaved in one process, and shows the minima as ratios to one of them."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping


def least_cpu(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int = 15, calls: int = 2000
) -> dict[str, float]:
    """The minimum CPU time per call of each contender, in nanoseconds; each round runs them in random order."""
    best = dict.fromkeys(contenders, float("inf"))
    for contender in contenders.values():
        contender()
    gc.disable()
    for _ in range(rounds):
        for name in random.sample(list(contenders), len(contenders)):
            contender = contenders[name]
            start = time.process_time_ns()
            for _ in range(calls):
                contender()
            best[name] = min(best[name], (time.process_time_ns() - start) / calls)
        gc.collect()
    gc.enable()
    return best


def table(title: str, best: Mapping[str, float], base: str, unit: str = "ns") -> str:
    lines = [f"{title}  (x = ratio to: {base})"]
    lines += [f"  {name:<52} {value:>12,.0f} {unit}  {value / best[base]:>7.2f} x" for name, value in best.items()]
    return "\n".join(lines)
