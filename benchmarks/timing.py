"""Measures contenders interleaved in one process: CPU time, least of several rounds.

Other programs on the machine make every run slower, never faster, so minima are compared. CPU time counts what a
contender computed, not how long it waited for a processor.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

ROUNDS: Final = 25
ROUND_NS: Final = 4_000_000
"""How long one contender runs in one round: short enough that some round is undisturbed, long enough for the clock."""
MAX_CALLS: Final = 5000


def least_cpu(contenders: Mapping[str, Callable[[], object]], *, rounds: int = ROUNDS) -> dict[str, float]:
    """The least CPU time per call of each contender, in nanoseconds; each round runs them in random order."""
    return asyncio.run(least_cpu_async(contenders, {}, rounds=rounds))


async def least_cpu_async(
    contenders: Mapping[str, Callable[[], object]],
    awaited: Mapping[str, Callable[[], Awaitable[object]]],
    *,
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """As ``least_cpu``, with contenders that are awaited, in the same rounds."""

    async def spend(name: str, calls: int) -> float:
        start = time.process_time_ns()
        if name in awaited:
            wait = awaited[name]
            for _ in range(calls):
                await wait()
        else:
            call = contenders[name]
            for _ in range(calls):
                call()
        return (time.process_time_ns() - start) / calls

    calls = {}
    for name in [*contenders, *awaited]:
        first = await spend(name, 1)  # it also loads what only a first call loads, so it says little
        usual = min(first, await spend(name, 1 if first > ROUND_NS else 3))
        calls[name] = max(1, min(MAX_CALLS, int(ROUND_NS / max(1, usual))))
    best = dict.fromkeys(calls, float("inf"))
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            for name in random.sample(list(calls), len(calls)):
                gc.collect()
                best[name] = min(best[name], await spend(name, calls[name]))
    finally:
        gc.unfreeze()
    return best


def cpu_ms() -> float:
    """The CPU time of this process and of the children it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime)


def least_cpu_with_children(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The least CPU time in milliseconds, for contenders that start processes; the first round only warms up."""
    best = dict.fromkeys(contenders, float("inf"))
    for attempt in range(rounds + 1):
        for name in random.sample(list(contenders), len(contenders)):
            before = cpu_ms()
            contenders[name]()
            if attempt or not rounds:
                best[name] = min(best[name], cpu_ms() - before)
    return best


def python_cpu_ms(program: str, environment: Mapping[str, str]) -> float:
    """The CPU time of a fresh interpreter that runs a program."""
    return child_cpu_ms([sys.executable, "-c", program], environment=environment)


def child_cpu_ms(
    command: list[str], *, folder: str | None = None, environment: Mapping[str, str] | None = None
) -> float:
    """The CPU time of a command and its children. It must succeed; its output is dropped."""
    before = cpu_ms()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return cpu_ms() - before


def least_wall(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, list[float]]:
    """All wall times in milliseconds, sorted: for what mostly waits for other processes."""
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(rounds):
        for name in random.sample(list(contenders), len(contenders)):
            start = time.perf_counter()
            contenders[name]()
            walls[name].append((time.perf_counter() - start) * 1000)
    return {name: sorted(times) for name, times in walls.items()}


def descendants_cpu_ms(name: str) -> float:
    """The CPU time so far of processes below this one whose command has ``name`` in it, and of all that they started."""
    table = {pid: stat for pid in filter(str.isdecimal, os.listdir("/proc")) if (stat := _read_stat(pid))}
    named = {pid for pid in table if name in _read_command(pid) and str(os.getpid()) in _ancestors(pid, table)}
    # A child that has ended has no command any more, and counts for its parent only when that has waited for it.
    found = [stat for pid, stat in table.items() if pid in named or not named.isdisjoint(_ancestors(pid, table))]
    return sum(int(ticks) for stat in found for ticks in stat[11:15]) * 1000 / os.sysconf("SC_CLK_TCK")


def _read_stat(pid: str) -> list[str]:
    """The fields after the name of the program, which may hold spaces."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []  # it has ended


def _read_command(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _ancestors(pid: str, table: Mapping[str, list[str]]) -> set[str]:
    found: set[str] = set()
    while pid in table:
        pid = table[pid][1]
        found.add(pid)
    return found
