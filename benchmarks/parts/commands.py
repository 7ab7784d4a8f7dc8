"""One command, ``true``: what each sandbox tier adds to a plain subprocess. Wall time, because most of it is waiting."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

from benchmarks.results import Row, Table
from benchmarks.timing import least_wall
from toolkit.guard import ProcessGuard
from toolkit.guard.permission import CarrierChoice, SandboxChoice
from toolkit.guard.process.tier import pick_tier

ROUNDS: Final = 100
BASE: Final = "subprocess.run"
FULL: Final = "ProcessGuard.run, full"
MORE_FOR_FULL: Final = "the full sandbox, in addition to a plain subprocess"
TIERS: tuple[tuple[SandboxChoice, CarrierChoice], ...] = (
    ("unsafe-none", "auto"),
    ("reduced", "auto"),
    ("full", "own"),
    ("full", "bubblewrap"),
)
# Bubblewrap as commonly used: a read-only view of everything, no Landlock, no seccomp filter.
BUBBLEWRAP = ("--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--die-with-parent")


def measure(*, full: bool) -> Iterator[Table]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        contenders, notes = _contenders(stack, folder)
        plain = {BASE, *(name for name in contenders if "subprocess" in name)}
        walls = least_wall(contenders, rounds=ROUNDS if full else 1)
        base = walls[BASE][0]
        rows = [
            Row(
                name,
                times[0],
                "ms",
                times[0] / base,
                BASE,
                ours=name not in plain,
                detail=f"median {times[len(times) // 2]:.2f}",
            )
            for name, times in walls.items()
        ]
        if FULL in walls:
            rows.append(Row(MORE_FOR_FULL, walls[FULL][0] - base, "ms"))
        rows += _first_command(folder, attempts=5 if full else 1)
    yield Table("true", f"One command, `true`, wall time, least of {ROUNDS} runs", tuple(rows), notes=tuple(notes))


def _contenders(stack: ExitStack, folder: str) -> tuple[dict[str, Callable[[], object]], list[str]]:
    program = shutil.which("true") or "true"
    contenders: dict[str, Callable[[], object]] = {
        BASE: lambda: subprocess.run([program], capture_output=True, check=True),
        'subprocess.run, bash -c "true"': lambda: subprocess.run(["bash", "-c", "true"], capture_output=True),
    }
    notes: list[str] = []
    for sandbox, carrier in TIERS:
        choice = pick_tier(sandbox, carrier)
        if choice.name == "none" and not choice.unsafe:
            notes.append(f"no {sandbox} sandbox here: {choice.reason}")
            continue
        guard = stack.enter_context(ProcessGuard(folder, sandbox=sandbox, carrier=carrier))
        name = f"ProcessGuard.run, {sandbox}" + (" with bubblewrap" if choice.bubblewrap else "")
        contenders[name] = partial(guard.run, ["true"])
    if bubblewrap := shutil.which("bwrap"):
        command = [bubblewrap, *BUBBLEWRAP, program]
        contenders["bwrap, subprocess.run"] = lambda: subprocess.run(command, capture_output=True, check=True)
    else:
        notes.append("bubblewrap is not installed here")
    return contenders, notes


def _first_command(folder: str, attempts: int) -> Iterator[Row]:
    """The first command of a guard, which starts the fork server."""
    if pick_tier("auto").name == "none":
        return
    times = []
    for _ in range(attempts):
        start = time.perf_counter()
        with ProcessGuard(folder) as guard:
            guard.run(["true"])
        times.append((time.perf_counter() - start) * 1000)
    yield Row("the first command of a guard", min(times), "ms")
