"""``make fuzz``: every target under atheris for some seconds, and what was tried, as a table.

New inputs that reach new code are kept in ``build/fuzz``, for the next run. An input that breaks a property is written there
too, and the command fails: reduce it, put it into ``tests/fuzz/corpus/<target>`` under a name that says what it is, and fix
what it broke. Where atheris cannot be installed, every target runs over its kept corpus, and the table says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz.targets import CORPUS, MAX_INPUT, TARGETS, kept_inputs, load_target
from tests.projects import REPOSITORY

BUILD: Final = REPOSITORY / "build" / "fuzz"
LONGEST_SECONDS: Final = 10
"""One input that takes longer is a finding: it hangs."""
_EXECUTED: Final = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class TargetRun:
    """What one target has been given."""

    target: str
    tried: int
    seconds: float
    finding: str
    """Where the input is that broke a property; empty if none did."""


def fuzz(target: str, seconds: int) -> TargetRun:
    found = BUILD / target
    found.mkdir(parents=True, exist_ok=True)
    crash = BUILD / f"{target}-finding"
    crash.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "tests.fuzz.under_atheris", target, str(found), str(CORPUS / target),
        f"-max_total_time={seconds}", f"-max_len={MAX_INPUT}", f"-timeout={LONGEST_SECONDS}", "-print_final_stats=1",
        f"-exact_artifact_path={crash}",
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, errors="replace", check=False)
    executed = _EXECUTED.search(done.stderr)
    if done.returncode:
        sys.stdout.write(done.stdout[-3000:] + done.stderr[-3000:])
    failed = str(crash) if crash.exists() else f"ended with {done.returncode}" if done.returncode else ""
    return TargetRun(target, int(executed[1]) if executed else 0, time.monotonic() - began, failed)


def replay(target: str) -> TargetRun:
    """The kept inputs, without a fuzzer."""
    began, tried = time.monotonic(), 0
    for file in kept_inputs(target):
        try:
            load_target(target)(file.read_bytes())
        except Exception as error:
            sys.stdout.write(f"{file}: {error!r}\n")
            return TargetRun(target, tried, time.monotonic() - began, str(file))
        tried += 1
    return TargetRun(target, tried, time.monotonic() - began, "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="target", choices=[[], *TARGETS], help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    options = parser.parse_args()
    has_atheris = importlib.util.find_spec("atheris") is not None
    if not has_atheris:
        sys.stdout.write("atheris is not installed here: only the kept inputs are tried\n")
    os.makedirs(BUILD, exist_ok=True)
    runs = [fuzz(one, options.seconds) if has_atheris else replay(one) for one in options.targets or TARGETS]
    sys.stdout.write(
        "| target | inputs tried | seconds | kept inputs | findings |\n| --- | ---: | ---: | ---: | --- |\n"
    )
    for run in runs:
        kept = sum(1 for _ in kept_inputs(run.target))
        shown = os.path.relpath(run.finding, Path.cwd()) if os.path.exists(run.finding) else run.finding
        sys.stdout.write(f"| {run.target} | {run.tried:,} | {run.seconds:.0f} | {kept} | {shown or 'none'} |\n")
    return int(any(run.finding for run in runs))


if __name__ == "__main__":
    sys.exit(main())
