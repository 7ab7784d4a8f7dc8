"""One command, ``true``: what each tier adds to a plain subprocess. Wall time; look at the minima's differences."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from toolkit.guard.permission import CarrierChoice, SandboxChoice
from toolkit.guard.process.guard import ProcessGuard
from toolkit.guard.process.kernel.tier import pick_tier

ROUNDS = 100
BASE = "subprocess.run"
TIERS: tuple[tuple[SandboxChoice, CarrierChoice], ...] = (
    ("unsafe-none", "auto"),
    ("reduced", "auto"),
    ("full", "own"),
    ("full", "bubblewrap"),
)
# Bubblewrap as people use it: a read-only view of everything, no Landlock, no filter, no answer but an exit code.
BUBBLEWRAP = ("--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--die-with-parent")


def report() -> str:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        program = shutil.which("true") or "true"
        contenders: dict[str, Callable[[], object]] = {
            BASE: lambda: subprocess.run([program], capture_output=True, check=True),
            'subprocess.run, bash -c "true"': lambda: subprocess.run(["bash", "-c", "true"], capture_output=True),
        }
        notes: list[str] = []
        for sandbox, carrier in TIERS:
            choice = pick_tier(sandbox, carrier)
            if choice.name == "none" and not choice.unsafe:
                notes.append(f"  no {sandbox} tier here: {choice.reason}")
                continue
            guard = stack.enter_context(ProcessGuard(folder, sandbox=sandbox, carrier=carrier))
            name = f"ProcessGuard.run, {sandbox}" + (" by bubblewrap" if choice.bubblewrap else "")
            contenders[name] = partial(guard.run, ["true"])
        bubblewrap = shutil.which("bwrap")
        if bubblewrap:
            command = [bubblewrap, *BUBBLEWRAP, program]
            contenders["bwrap, subprocess.run"] = lambda: subprocess.run(command, capture_output=True, check=True)
        else:
            notes.append("  bubblewrap is not installed here")
        return "\n".join([*_table(_walls(contenders)), _cold(folder), *notes])


def _walls(contenders: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """The wall time of every run in milliseconds, sorted; the order is shuffled in every round."""
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(ROUNDS):
        for name in random.sample(list(contenders), len(contenders)):
            start = time.perf_counter()
            contenders[name]()
            walls[name].append((time.perf_counter() - start) * 1000)
    return {name: sorted(times) for name, times in walls.items()}


def _table(walls: dict[str, list[float]]) -> list[str]:
    base = walls[BASE][0]
    lines = [f"One command, `true`, {ROUNDS} runs each  (+ = over: {BASE}, of the minima)"]
    for name, times in walls.items():
        lines.append(
            f"  {name:<40} {times[0]:>8.2f} ms least {times[len(times) // 2]:>8.2f} median  {times[0] - base:>+7.2f}"
        )
    return lines


def _cold(folder: str) -> str:
    """The first command of a guard, which starts the fork server."""
    if pick_tier("auto").name == "none":
        return ""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        with ProcessGuard(folder) as guard:
            guard.run(["true"])
        times.append((time.perf_counter() - start) * 1000)
    return f"  {'first command of a guard, auto':<40} {min(times):>8.2f} ms least"
