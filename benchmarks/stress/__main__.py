"""``python -m benchmarks.stress``: prints the tables of docs/reliability.md, or writes them there with ``--keep``."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from benchmarks import REPOSITORY
from benchmarks.stress.kills import FaultRow, edits_of_several_processes, kills_inside_patches
from benchmarks.stress.load import (
    LoadRow,
    commands,
    fill,
    in_a_loop,
    in_one_thread,
    in_threads,
    plain_reads,
    reads,
    toolkits,
)

PAGE = REPOSITORY / "docs" / "reliability.md"
BEGIN, END = "<!-- stress -->", "<!-- end of stress -->"


def run(scale: float) -> tuple[list[LoadRow], list[FaultRow]]:
    """An hour's worth of calls at ``scale`` 1: what an agent makes that calls 60 times a second."""
    with tempfile.TemporaryDirectory(prefix="toolkit-stress-") as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        fill(workspace)
        calls = max(100, int(72_000 * scale))
        loads = [
            in_one_thread(workspace, calls),
            in_threads(workspace, calls),
            in_a_loop(workspace, calls),
            *(reads(workspace, calls, threads) for threads in (1, 4)),
            *(plain_reads(workspace, calls, threads) for threads in (1, 4)),
            commands(workspace, max(10, int(3000 * scale))),
            toolkits(workspace, max(10, int(2000 * scale))),
        ]
        faults = [
            edits_of_several_processes(workspace, max(10, int(1000 * scale))),
            kills_inside_patches(workspace, max(5, int(400 * scale))),
        ]
    return loads, faults


def tables(loads: Sequence[LoadRow], faults: Sequence[FaultRow]) -> str:
    rates = {row.name: row.calls / row.seconds for row in loads}
    lines = [
        f"Measured on {date.today():%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores.",
        "",
        "| load | calls | calls a second | against one core | p50 | p99 | wrong results | leaked | memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in loads:
        rate = rates[row.name]
        against = f"{rate / rates[row.one_core]:.2f}x" if row.one_core else ""
        lines.append(
            f"| {row.name} | {row.calls:,} | {rate:,.0f} | {against} | {row.p50_ms:.3f} ms | {row.p99_ms:.2f} ms |"
            f" {row.unexpected} | {row.leaked} | {row.grown_kib / 1024:+.1f} MiB |"
        )
    lines += ["", "| fault | times | lost or half done | left behind |", "|---|---|---|---|"]
    lines += [f"| {row.name} | {row.times:,} | {row.lost} | {row.left} |" for row in faults]
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.stress", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="how much of an hour's calls; 0.01 is a quick look")
    parser.add_argument("--keep", action="store_true", help="write the tables into docs/reliability.md")
    options = parser.parse_args(words)
    loads, faults = run(options.scale)
    text = tables(loads, faults)
    print(text)  # noqa: T201
    if options.keep:
        page = PAGE.read_text()
        PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text}\n{END}", page, flags=re.S))
    wrong = sum(row.unexpected + row.leaked for row in loads) + sum(row.lost + row.left for row in faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
