"""Calls by the ten thousands: one thread, several threads, an event loop, commands, and toolkits that come and go."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stress.leaks import count_held
from toolkit import SecurityPolicy, ToolCall, Toolkit, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit

FILES = 50
MIXED = "mixed calls, one thread"
POLICY = SecurityPolicy(default="allow", tools={"webfetch": "deny"})


@dataclass(frozen=True, slots=True)
class LoadRow:
    """One kind of load: calls, how long they took, what came out, what was left behind."""

    name: str
    one_core: str
    """The load of the same kind in one thread, which keeps one core busy; empty if there is none."""
    calls: int
    seconds: float
    p50_ms: float
    p99_ms: float
    unexpected: int
    leaked: int
    grown_kib: int


def fill(workspace: Path) -> None:
    for number in range(FILES):
        (workspace / f"f{number}.txt").write_text("".join(f"line {line} of {number}\n" for line in range(200)))


def mixed_calls(count: int, seed: int) -> Iterator[tuple[ToolCall, str]]:
    """Calls as an agent makes them, each with the kind of its result."""
    chance = random.Random(seed)
    for number in range(count):
        name, path = str(number), f"f{chance.randrange(FILES)}.txt"
        yield chance.choice(
            [
                (ToolCall(name, "read_file", {"path": path}), "text"),
                (ToolCall(name, "read_file", {"path": path, "start_line": 100, "max_lines": 20}), "text"),
                (ToolCall(name, "grep", {"pattern": "line 7 ", "path": path}), "text"),
                (ToolCall(name, "list", {"path": "."}), "text"),
                (ToolCall(name, "write_file", {"path": f"w{chance.randrange(FILES)}.txt", "content": name}), "text"),
                (ToolCall(name, "todowrite", {"todos": []}), "text"),
                (ToolCall(name, "read_file", {"path": "missing"}), "error"),
                (ToolCall(name, "read_file", {"path": "../outside"}), "error"),
                (ToolCall(name, "read_flie", {"path": path}), "error"),
                (ToolCall(name, "read_file", {"pth": path}), "error"),
                (ToolCall(name, "webfetch", {"url": "http://127.0.0.1:9/"}), "error"),
            ]
        )


def measure(name: str, one_core: str, work: Callable[[], tuple[list[float], int]]) -> LoadRow:
    """Runs the work twice, a little first: what is kept for ever is made then, and does not count as leaked."""
    work()
    before = count_held()
    begin = time.perf_counter()
    times, unexpected = work()
    seconds = time.perf_counter() - begin
    after = count_held()
    times.sort()
    return LoadRow(
        name,
        one_core,
        len(times),
        seconds,
        times[len(times) // 2] * 1000,
        times[min(len(times) - 1, len(times) * 99 // 100)] * 1000,
        unexpected,
        after.more_than(before),
        after.resident_kib - before.resident_kib,
    )


def _context(workspace: Path) -> ToolkitContext:
    return ToolkitContext(workspace, POLICY, state_dir=workspace.parent / "state")


def _run_calls(toolkit: Toolkit, count: int, seed: int) -> tuple[list[float], int]:
    times, unexpected = [], 0
    for call, kind in mixed_calls(count, seed):
        begin = time.perf_counter()
        result = toolkit.call(call)
        times.append(time.perf_counter() - begin)
        unexpected += (result.kind == "error") != (kind == "error")
    return times, unexpected


def in_one_thread(workspace: Path, count: int) -> LoadRow:
    def work() -> tuple[list[float], int]:
        with create_agent_toolkit(_context(workspace)) as toolkit:
            return _run_calls(toolkit, count, 1)

    return measure(MIXED, MIXED, work)


def in_threads(workspace: Path, count: int, threads: int = 4) -> LoadRow:
    def work() -> tuple[list[float], int]:
        with create_agent_toolkit(_context(workspace)) as toolkit:
            return _at_once(threads, lambda seed: _run_calls(toolkit, count // threads, seed))

    return measure(f"mixed calls, {threads} threads", MIXED, work)


def _at_once(threads: int, work: Callable[[int], tuple[list[float], int]]) -> tuple[list[float], int]:
    found: list[tuple[list[float], int]] = []
    running = [threading.Thread(target=lambda seed=seed: found.append(work(seed))) for seed in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return [one for times, _ in found for one in times], sum(unexpected for _, unexpected in found)


def reads(workspace: Path, count: int, threads: int) -> LoadRow:
    """``read_file`` of files of 200 lines."""

    def work() -> tuple[list[float], int]:
        with create_agent_toolkit(_context(workspace)) as toolkit:

            def read(path: str) -> int | None:
                return toolkit.tools.read_file(path=path).total_lines

            return _at_once(threads, lambda seed: _run_reads(read, count // threads))

    return measure(f"`read_file`, {_threads(threads)}", f"`read_file`, {_threads(1)}", work)


def plain_reads(workspace: Path, count: int, threads: int) -> LoadRow:
    """The same files by ``open`` alone: what threads of this Python can do."""

    def read(path: str) -> int:
        with (workspace / path).open() as file:
            return file.read().count("\n")

    return measure(
        f"`open(path).read()`, {_threads(threads)}",
        f"`open(path).read()`, {_threads(1)}",
        lambda: _at_once(threads, lambda seed: _run_reads(read, count // threads)),
    )


def _threads(number: int) -> str:
    return "one thread" if number == 1 else f"{number} threads"


def _run_reads(read: Callable[[str], int | None], count: int) -> tuple[list[float], int]:
    times, unexpected = [], 0
    for number in range(count):
        begin = time.perf_counter()
        lines = read(f"f{number % FILES}.txt")
        times.append(time.perf_counter() - begin)
        unexpected += lines != 200
    return times, unexpected


def in_a_loop(workspace: Path, count: int, at_once: int = 64) -> LoadRow:
    async def run() -> tuple[list[float], int]:
        times: list[float] = []
        unexpected = 0
        calls = mixed_calls(count, 2)
        async with create_async_agent_toolkit(_context(workspace)) as toolkit:

            async def use() -> None:
                nonlocal unexpected
                for call, kind in calls:
                    begin = time.perf_counter()
                    result = await toolkit.call(call)
                    times.append(time.perf_counter() - begin)
                    unexpected += (result.kind == "error") != (kind == "error")

            await asyncio.gather(*(use() for _ in range(at_once)))
        return times, unexpected

    return measure(f"mixed calls, an event loop, {at_once} at once", MIXED, lambda: asyncio.run(run()))


def commands(workspace: Path, count: int) -> LoadRow:
    def work() -> tuple[list[float], int]:
        times, unexpected = [], 0
        with create_agent_toolkit(_context(workspace)) as toolkit:
            for number in range(count):
                begin = time.perf_counter()
                done = toolkit.tools.exec_command(command=["true"] if number % 2 else ["false"])
                times.append(time.perf_counter() - begin)
                unexpected += done.exit_code != (number + 1) % 2
        return times, unexpected

    return measure("commands in the sandbox, one thread", "", work)


def toolkits(workspace: Path, count: int) -> LoadRow:
    def work() -> tuple[list[float], int]:
        times, unexpected = [], 0
        for number in range(count):
            begin = time.perf_counter()
            with create_agent_toolkit(_context(workspace)) as toolkit:
                unexpected += toolkit.with_options(deadline=60).tools.read_file(path="f1.txt").total_lines != 200
                if not number % 50:
                    unexpected += toolkit.tools.exec_command(command=["true"]).exit_code != 0
            times.append(time.perf_counter() - begin)
        return times, unexpected

    return measure("toolkits opened and closed", "", work)
