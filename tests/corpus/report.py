"""``make corpus``: the results for all shared specs and suites as one table. The exit code is 1 if something fails."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.corpus import meaning_report, suite_report
from tests.corpus.project import SharedTool, shared_tools
from tests.corpus.proof import A_PACKAGE, INVOKE_EVERY, Proof, prove
from tests.corpus.specs import FILES


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--every", type=int, default=1, help="use only every N-th spec, for a quick look")
    every = options.parse_args().every
    corpus = Path(os.environ.get("TOOLKIT_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
    if not corpus.is_dir():
        print("the shared corpus was not found; set TOOLKIT_CORPUS to its folder", file=sys.stderr)  # noqa: T201
        return 2
    tools = shared_tools(corpus)[::every]
    proofs = []
    for title, a_package, invoke_every, runs_calls in (
        ("every tool called through every entry point, in packages of a hundred", A_PACKAGE, 1, True),
        ("all tools in one package, every method type-checked", len(tools), INVOKE_EVERY, False),
    ):
        with tempfile.TemporaryDirectory(prefix="toolkit-corpus-") as folder:
            proofs.append(prove(Path(folder), tools, a_package, invoke_every, runs_calls=runs_calls))
        _print([title, *table(proofs[-1]), ""])
    start = time.monotonic()
    meaning, missed = meaning_report.report(corpus, every)
    _print([*meaning, *(f"failed: {text}" for text in missed), f"seconds: {round(time.monotonic() - start)}", ""])
    _print([*suite_report.lines(corpus), ""])
    return 1 if missed or any(proof.failures() for proof in proofs) else 0


def table(proof: Proof) -> list[str]:
    """One line per file of the corpus, then the refusals with their reasons, the failures, and the time taken."""
    lines = [
        f"{'file':<20} {'specs':>6} {'generated':>10} {'imported':>9} {'mypy':>6} {'pyright':>8} {'refused':>8}"
        f" {'called':>7} {'entry points agree':>19}"
    ]
    lines += [_line(file, [tool for tool in proof.tools if tool.file == file], proof) for file in FILES]
    lines.append(_line("all", proof.tools, proof))
    lines += [f"refused: {name}: {reason}" for name, reason in sorted(proof.refused.items())]
    lines += [f"failed: {text}" for text in proof.failures()]
    lines.append("seconds: " + ", ".join(f"{stage} {seconds}" for stage, seconds in proof.seconds.items()))
    return lines


def _line(title: str, tools: Sequence[SharedTool], proof: Proof) -> str:
    """Errors count for the tool they name; the last line also counts errors that name no tool."""
    names = {tool.wire for tool in tools}
    everything = len(tools) == len(proof.tools)
    refused = len(names & proof.refused.keys())
    generated = len(tools) - refused
    imported = generated - len(names & proof.not_imported.keys())
    mypy, pyright = (
        sum(name in names or everything for name, _ in proof.errors[checker]) for checker in ("mypy", "pyright")
    )
    called = names & proof.disagreements.keys()
    agreeing = sum(not proof.disagreements[name] for name in called)
    share = f"{100 * agreeing / len(called):.2f} %" if called else "-"
    return (
        f"{title:<20} {len(tools):>6} {generated:>10} {imported:>9} {mypy:>6} {pyright:>8} {refused:>8}"
        f" {len(called):>7} {share:>19}"
    )


def _print(lines: Sequence[str]) -> None:
    print("\n".join(lines), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
