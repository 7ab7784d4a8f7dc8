"""``make mutants``: a sample of mutants by a fixed seed, and which of them no test noticed.

A mutant is written into the source tree, its part's tests run until the first failure, and the file is put back. So it needs a
tree without changes in the mutated parts, and nobody else who uses it. Survivors are printed as ``file:line: change``.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.mutants.mutate import Mutant, mutate, places
from tests.projects import REPOSITORY

# For each part: a pattern of its modules, and the tests that should notice a change of them.
PARTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "functions": (
        "toolkit/runtime/functions.py",
        tuple(f"tests/runtime/test_{name}.py" for name in ("define_tool", "code_first_calls", "standalone", "registry", "lazy_tools", "tool_methods", "own_classes")),
    ),
    "call": (
        "toolkit/runtime/path.py",
        tuple(f"tests/runtime/test_{name}.py" for name in ("call_path", "coerce", "approval", "argument_text", "direct_calls", "shared_policy", "audit")),
    ),
    "policy": ("toolkit/guard/policy/*.py", ("tests/guard/policy", "tests/fuzz")),
    "wire": ("toolkit/wire/*.py", ("tests/wire", "tests/adapters/test_answers.py", "tests/adapters/test_events.py")),
    "adapters": ("toolkit/adapters/**/*.py", ("tests/adapters",)),
    "builtin": ("toolkit/builtin/**/*.py", ("tests/builtin", "tests/fuzz")),
}  # fmt: skip
SEED: Final = 18
SECONDS: Final = 300
"""A mutant whose tests take longer loops: it was noticed."""


def sample(part: str, count: int) -> list[tuple[Path, Mutant]]:
    modules = sorted(REPOSITORY.glob(PARTS[part][0]))
    every = [(file, place) for file in modules for place in places(file.read_text())]
    chosen = random.Random(f"{SEED} {part}").sample(every, min(count, len(every)))
    return [(file, mutate(file.read_text(), place)) for file, place in chosen]


def survives(part: str, file: Path, mutant: Mutant) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", *PARTS[part][1]]
    original = file.read_bytes()
    try:
        file.write_text(mutant.text)
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_bytes(original)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("parts", nargs="*", metavar="part", choices=[[], *PARTS], help=", ".join(PARTS))
    parser.add_argument("--count", type=int, default=5, help="of each part")
    parser.add_argument("--list", action="store_true", help="print the sample and run nothing")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the file is put back
    survivors = tried = 0
    for part in options.parts or PARTS:
        for file, mutant in sample(part, options.count):
            shown = f"{file.relative_to(REPOSITORY)}:{mutant.line}: {mutant.change}"
            tried += 1
            if options.list or survives(part, file, mutant):
                survivors += 1
                sys.stdout.write(f"{shown}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{tried} mutants, {survivors} {'listed' if options.list else 'survived'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
