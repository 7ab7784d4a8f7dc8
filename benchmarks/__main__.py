"""``python -m benchmarks``: measures the named parts, or all that are not slow; prints tables and the goals.

``make bench`` runs it beside the peers. Compare the ratios; times depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from benchmarks import REPOSITORY
from benchmarks.check import compare
from benchmarks.comparison import put_comparison
from benchmarks.goals import judge
from benchmarks.parts import PARTS
from benchmarks.results import Run
from benchmarks.show import show_about, show_differences, show_goals, show_table

BASELINE: Final = REPOSITORY / "benchmarks" / "baseline.json"
PAGE: Final = REPOSITORY / "docs" / "speed.md"
COMPARISON: Final = REPOSITORY / "docs" / "comparison.md"
PLOTS: Final = REPOSITORY / "docs" / "speed"
PACKAGES: Final = (
    *("pydantic", "datamodel-code-generator", "ripgrep"),
    *("anthropic", "openai-agents", "pydantic-ai-slim", "langchain-core", "fastmcp", "pydantic-monty"),
)


def parse_options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to measure; --list names the parts")
    parser.add_argument("--list", action="store_true", help="name the parts and end")
    parser.add_argument("--smoke", action="store_true", help="small inputs, one round: does it run at all?")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="read a run instead of measuring")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the run")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the run (needs matplotlib)")
    parser.add_argument(
        "--check",
        nargs="?",
        type=Path,
        const=BASELINE,
        metavar="FILE",
        help="fail if something got worse than in this run",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="commit to this run: baseline.json, docs/speed.md and its plots, docs/comparison.md",
    )
    options = parser.parse_args(words)
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; --list names them")
    return options


def main(words: Sequence[str]) -> int:
    options = parse_options(words)
    if options.list:
        _say("\n".join(f"{part.name:<14} {part.about}" for part in PARTS.values()))
        return 0
    names = options.parts or [part.name for part in PARTS.values() if not part.slow]
    run = Run.read(options.source) if options.source else measure(names, full=not options.smoke)
    if options.source:
        for part, tables in run.parts.items():
            for table in tables:
                _say(show_table(part, table))
    goals = [report for report in judge(run) if report.goal.part in run.parts]
    _say(f"{show_about(run)}\n\n## Goals\n\n{show_goals(goals)}\n")
    if options.json:
        run.write(options.json, goals=[report.as_json() for report in goals])
    if options.plots:
        draw(run, options.plots)
    if options.keep:
        keep(run)
    return check(run, Run.read(options.check), measured=options.source is None) if options.check else 0


def measure(names: Sequence[str], *, full: bool) -> Run:
    """Measures the parts and shows each table as soon as it is there."""
    run = Run(_about())
    for name in names:
        run.parts[name] = []
        for table in PARTS[name].measure(full=full):
            run.parts[name].append(table)
            _say(show_table(name, table))
    return run


def check(run: Run, before: Run, *, measured: bool) -> int:
    """Parts in which something got worse are measured again: a row counts only if it is worse both times."""
    found = compare(before, run)
    suspects = [one for one in found if one.verdict == "worse"]
    if suspects and measured:
        _say(f"These seem worse, so their parts are measured again:\n{show_differences(suspects)}\n")
        parts = list(dict.fromkeys(one.row.partition("/")[0] for one in suspects))
        again = {one.row for one in compare(before, measure(parts, full=True)) if one.verdict == "worse"}
        found = [one for one in found if one.verdict != "worse" or one.row in again]
    _say(f"## Compared with the committed run\n\n{show_differences(found)}")
    return int(any(one.fails for one in found))


def draw(run: Run, folder: Path) -> None:
    from benchmarks.plots import draw_all

    try:
        for file in draw_all(run, folder):
            _say(f"drawn: {file}")
    except ImportError as error:
        _say(f"No plots: {error}. `make bench` runs in an environment that has matplotlib.")


def keep(run: Run) -> None:
    """The committed run, the plots and the tables of both pages come from one run."""
    run.write(BASELINE)
    draw(run, PLOTS)
    head, _, rest = PAGE.read_text().partition("<!-- goals -->\n")
    _, _, foot = rest.partition("<!-- end of goals -->")
    PAGE.write_text(f"{head}<!-- goals -->\n{show_goals(judge(run))}\n<!-- end of goals -->{foot}")
    COMPARISON.write_text(put_comparison(COMPARISON.read_text(), run))


def _about() -> dict[str, str]:
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name}: not installed")
    load = "{:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg())
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, load {load}",
        "versions": ", ".join(versions),
    }


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
