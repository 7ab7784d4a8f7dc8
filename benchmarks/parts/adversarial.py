"""Hostile inputs at two sizes: how time grows with size, and the memory they take.

Each input is measured at a size and at half of it; a refusal is named by its code. No test measures time: the suite
asserts counts and sizes, and this table is read by people.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Row, Table
from toolkit import SecurityPolicy, ToolkitContext, ToolkitError, create_agent_toolkit
from toolkit.builtin.shell.output import OutputEscaper
from toolkit.builtin.web.html import Page
from toolkit.builtin.web.markdown import to_markdown
from toolkit.generated import Rule, Toolkit
from toolkit.packs.answers import find_not_json
from toolkit.packs.mcp.stdio import parse_message
from toolkit.runtime.audit import verify

CHUNK = 1 << 16
TOO_SHORT = 0.01
"""Seconds below which growth says nothing."""


class Case(NamedTuple):
    """``make(n)`` prepares an input of that size and returns what is measured; ``size`` is its bytes, if a rate is wanted."""

    name: str
    n: int
    make: Callable[[int], Callable[[], object]]
    size: Callable[[int], int] | None = None


def measure(*, full: bool) -> Iterator[Table]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "workspace").mkdir()
        rows = tuple(_row(case, max(1, case.n if full else case.n // 100)) for case in _cases(stack, folder))
    yield Table("inputs", "Hostile inputs: a ratio of 2 is linear growth, 4 is quadratic", rows)


def _row(case: Case, n: int) -> Row:
    (once, refusal), (twice, _) = (_seconds(case.make(size)) for size in (n, 2 * n))
    rate = f"{case.size(n) / once / 1e6:.1f} MB/s" if case.size else ""
    peak = f"{_peak_megabytes(case.make(n)):.1f} MB at its peak"
    ratio = twice / once if once > TOO_SHORT else None
    detail = "; ".join(filter(None, (f"size {2 * n:,}", peak, refusal or rate)))
    return Row(case.name, 1000 * twice, "ms", ratio, "the same input at half the size", detail=detail)


def _seconds(action: Callable[[], object]) -> tuple[float, str]:
    """The least CPU time of three runs, and the refusal if there is one."""
    best, refusal = float("inf"), ""
    for _ in range(3):
        start = time.process_time()
        refusal = _run(action)
        best = min(best, time.process_time() - start)
        if best > 1:
            break
    return max(best, 1e-9), refusal


def _run(action: Callable[[], object]) -> str:
    try:
        action()
    except ToolkitError as error:
        return error.code
    return ""


def _peak_megabytes(action: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        _run(action)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _cases(stack: ExitStack, folder: Path) -> Iterator[Case]:
    rules = [
        Rule("deny", command="rm -rf"),
        Rule("deny", path="**/a*a*a*a*b/**"),
        Rule("ask", permission="network"),
    ]
    policy = SecurityPolicy(default="allow", rules=rules)
    log = folder / "audit.jsonl"
    context = ToolkitContext(folder / "workspace", policy, audit=log)
    toolkit = stack.enter_context(create_agent_toolkit(context))
    loose = SecurityPolicy(default="allow")
    coerce = stack.enter_context(create_agent_toolkit(ToolkitContext(folder / "workspace", loose, coerce=True)))
    yield from _commands(policy)
    yield from _arguments(toolkit, coerce)
    yield from _files(toolkit, folder / "workspace")
    yield from _pages()
    yield from _answers()
    yield from _outputs()
    yield from _audit(toolkit, log)


def _commands(policy: SecurityPolicy) -> Iterator[Case]:
    texts: dict[str, Callable[[int], str]] = {
        "rules: env a a a ...": lambda n: "env " + "a " * n,
        "rules: a; a; a ...": lambda n: "a; " * n,
        "rules: $($($(...": lambda n: "$(" * n,
        "rules: nested quotes": lambda n: "sh -c '" * n,
        "rules: a && a | a ...": lambda n: "a && a | " * n + "a",
    }
    for name, make in texts.items():
        yield Case(name, 2000, _explaining(policy, make))


def _explaining(policy: SecurityPolicy, make: Callable[[int], str]) -> Callable[[int], Callable[[], object]]:
    def prepare(n: int) -> Callable[[], object]:
        arguments = {"command": make(n)}
        return lambda: policy.explain("bash", arguments)

    return prepare


def _arguments(toolkit: Toolkit, coerce: Toolkit) -> Iterator[Case]:
    texts: dict[str, Callable[[int], str]] = {
        "arguments: unknown keys": lambda n: json.dumps({f"k{number}": number for number in range(n)}),
        "arguments: one key again and again": lambda n: "{" + '"a":1,' * n + '"a":1}',
        "arguments: deep": lambda n: '{"path":' + "[" * n + "]" * n + "}",
        "arguments: unclosed strings": lambda n: '{"path":' + '"[' * n,
        "arguments: a long number": lambda n: '{"path":' + "9" * n + "}",
    }
    for name, make in texts.items():
        yield Case(name, 100_000, _calling(toolkit, "read_file", make))
    yield Case(
        "arguments: unknown keys, coerce=True", 100_000, _calling(coerce, "read_file", texts["arguments: unknown keys"])
    )
    wrong: Callable[[int], str] = lambda n: json.dumps({"todos": [1] * n})  # noqa: E731
    yield Case("arguments: wrong items", 50_000, _calling(toolkit, "todowrite", wrong))
    yield Case("arguments: an unknown tool", 1_000_000, lambda n: lambda: toolkit.execute_raw("x" * n, "{}"))


def _calling(toolkit: Toolkit, tool: str, make: Callable[[int], str]) -> Callable[[int], Callable[[], object]]:
    def prepare(n: int) -> Callable[[], object]:
        text = make(n)
        return lambda: toolkit.execute_raw(tool, text)

    return prepare


def _files(toolkit: Toolkit, workspace: Path) -> Iterator[Case]:
    lines = [f"line {number}" for number in range(40_000)]
    (workspace / "many.txt").write_text("\n".join(lines) + "\n")
    (workspace / "same.txt").write_text("a" * 200_000 + "\n")
    deep = workspace / "/".join(["a" * 20] * 50)
    deep.mkdir(parents=True)
    (deep / "b").touch()

    def patch(n: int) -> Callable[[], object]:
        hunks = "".join(f"@@\n-{lines[4 * number]}\n+changed\n" for number in range(n))
        text = f"*** Begin Patch\n*** Update File: many.txt\n{hunks}*** End Patch\n"
        return lambda: toolkit.tools.apply_patch(patch=text, dry_run=True)

    yield Case("patch: many hunks", 2000, patch)
    yield Case("glob: **/a*a*a*...", 100, lambda n: lambda: toolkit.tools.glob(pattern="**/" + "a*" * n + "c"))
    yield Case("grep: (a?){n}a{n}b", 100, lambda n: lambda: toolkit.tools.grep(pattern=f"(a?){{{n}}}a{{{n}}}b"))
    yield Case("grep: (a|aa)+b", 1, lambda n: lambda: toolkit.tools.grep(pattern="(a|aa)+" * n + "b"))
    yield Case("deny rule: a long path", 1000, lambda n: lambda: toolkit.tools.read_file(path="a" * 30 + "/a" * n))


def _pages() -> Iterator[Case]:
    pages = {
        "page: rows": ("<table>", "<tr><td>x<td>y"),
        "page: cells": ("<table><tr>", "<td>x"),
        "page: tables in tables": ("", "<table><tr><td>x"),
        "page: items": ("<ol>", "<li>x"),
        "page: unclosed formats": ("", "<b><i><a href=x>y"),
        "page: attributes": ("<p ", "class=x "),
        "page: references": ("", "&amp;&#65;&"),
        "page: stars": ("", "*a"),
        "page: hidden characters": ("", "\u202e\0x"),
    }
    for name, (start, unit) in pages.items():
        yield Case(name, 200_000, _converting(start, unit), lambda n: n)


def _converting(start: str, unit: str) -> Callable[[int], Callable[[], object]]:
    def prepare(n: int) -> Callable[[], object]:
        text = start + unit * (n // len(unit))
        return lambda: to_markdown(Page(text, "https://example.org/").events(), 10 << 20)

    return prepare


def _answers() -> Iterator[Case]:
    def answer(result: object) -> Callable[[], object]:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
        return lambda: parse_message(line)

    def items(n: int) -> Callable[[], object]:
        return answer({"content": [{"type": "text", "text": "x"}] * n})

    def values(n: int) -> Callable[[], object]:
        return answer({"content": [], "structuredContent": {"rows": [[]] * n}})

    def quotes(n: int) -> Callable[[], object]:
        line = b'{"id": 1, "result": [' + b"," * 10_000 + b'"' + b'\\"' * n
        return lambda: parse_message(line)

    def not_a_number(n: int) -> Callable[[], object]:
        value = {"rows": [[1.5, "x"]] * n, "last": float("nan")}
        return lambda: find_not_json(value)

    yield Case("answer: content items", 100_000, items)
    yield Case("answer: empty lists", 1_000_000, values)
    yield Case("answer: a string without an end", 1_000_000, quotes)
    yield Case("answer: NaN behind many values", 100_000, not_a_number)


def _outputs() -> Iterator[Case]:
    program = Path("/bin/bash").read_bytes()
    outputs = {
        "output: plain": b"some line of output, as programs write it\n",
        "output: coloured": b"\x1b[31mred\x1b[0m and a line of output\n",
        "output: a NUL now and then": b"some line of output\n" * 50 + b"\0",
        "output: many control characters": b"abc\b\b\bdef\x01\x02\x03\x04 ",
        "output: other scripts": "schön \u6f22\u5b57\u3000\u00a0\n".encode(),
        "output: bidi overrides": "\u202e".encode(),
        "output: a program": program[: 1 << 20],
        "output: random bytes": os.urandom(1 << 16),
    }
    for name, unit in outputs.items():
        yield Case(name, 2 << 20, _escaping(unit), lambda n: n)


def _escaping(unit: bytes) -> Callable[[int], Callable[[], object]]:
    def prepare(n: int) -> Callable[[], object]:
        data = (unit * (n // len(unit) + 1))[:n]

        def escape() -> None:
            escaper = OutputEscaper()
            for start in range(0, n, CHUNK):
                escaper.feed(data[start : start + CHUNK])

        return escape

    return prepare


def _audit(toolkit: Toolkit, log: Path) -> Iterator[Case]:
    def lines(n: int) -> Callable[[], object]:
        log.write_bytes(b"")
        for _ in range(n // 2):
            toolkit.tools.done(message="x")
        return lambda: verify(log)

    yield Case("audit: lines to verify", 2000, lines)
