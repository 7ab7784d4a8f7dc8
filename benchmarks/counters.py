"""Counts the instructions of a command: with ``perf stat`` where the kernel allows it, else with valgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import REPOSITORY

ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(REPOSITORY)}
VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


class Counted(NamedTuple):
    """What a command printed, and the instructions by process id; all of them together are under 0."""

    output: str
    instructions: dict[int, int]


class Counter(NamedTuple):
    """``run`` runs a command. With ``tells_processes``, forked processes are counted separately."""

    name: str
    run: Callable[[Sequence[str]], Counted]
    tells_processes: bool


def count_by_perf(command: Sequence[str]) -> Counted:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        counting = ("perf", "stat", "-x,", "-e", "instructions:u", "-o", str(report), "--")
        output = _run([*counting, *command])
        return Counted(output, {0: int(re.findall(r"^(\d+),", report.read_text(), re.MULTILINE)[0])})


def count_by_valgrind(command: Sequence[str]) -> Counted:
    """Each process writes its own count. A forked process starts with the count of its parent."""
    with tempfile.TemporaryDirectory() as folder:
        output = _run([*VALGRIND, f"--log-file={folder}/%p", *command])
        found = {int(file.name): _references(file.read_text()) for file in Path(folder).iterdir()}
    return Counted(output, {0: max(found.values()), **found})


def _references(log: str) -> int:
    return int(re.findall(r"I\s+refs:\s+([\d,]+)", log)[0].replace(",", ""))


def _run(command: Sequence[str]) -> str:
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def find_counter() -> Counter | None:
    """The first one that can count a program that does nothing."""
    for counter in (
        Counter("perf stat", count_by_perf, tells_processes=False),
        Counter("valgrind, cachegrind", count_by_valgrind, tells_processes=True),
    ):
        try:
            if counter.run([shutil.which("true") or "true"]).instructions[0] > 0:
                return counter
        except (OSError, IndexError, ValueError):
            continue
    return None
