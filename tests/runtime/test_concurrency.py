"""How many calls run at once: threads are bounded, limits hold, what is too much is refused, and no result is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acme.generated import (
    AcmeToolkit,
    AsyncAcmeToolkit,
    SecurityPolicy,
    ToolkitContext,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from tests.projects import REPOSITORY
from toolkit import CallSettings, Concurrency, Load, Overloaded, Pack, SetupError, ToolCall, ToolContext, ToolResult
from toolkit.errors import ToolTimeout
from toolkit.runtime.workers import Workers

WATCHDOG = 60.0


class Gate:
    """A handler that waits until it is opened; remembers how many calls were inside at the same time."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.inside = threading.Semaphore(0)
        self.at_once = self.most = self.done = 0
        self._lock = threading.Lock()

    def __call__(self, args: Any, ctx: ToolContext) -> dict[str, str]:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        self.inside.release()
        assert self.opened.wait(WATCHDOG)
        with self._lock:
            self.at_once -= 1
            self.done += 1
        return {"text": "x"}

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.inside.acquire(timeout=WATCHDOG)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()


def context(folder: Path, limits: Concurrency | None = None) -> ToolkitContext:
    return ToolkitContext(folder, SecurityPolicy(default="allow"), calls=CallSettings(concurrency=limits))


def sync_toolkit(folder: Path, handler: Any, limits: Concurrency | None = None) -> AcmeToolkit:
    return create_agent_toolkit(context(folder, limits), packs=[Pack({"count-words": handler, "shout": handler})])


def async_toolkit(folder: Path, handler: Any, limits: Concurrency | None = None) -> AsyncAcmeToolkit:
    return create_async_agent_toolkit(context(folder, limits), packs=[Pack({"count-words": handler, "shout": handler})])


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count(number: int = 0) -> ToolCall:
    return ToolCall(str(number), "count-words", {"text": "x"})


def test_thousands_of_calls_at_once_take_few_threads(tmp_path: Path, gate: Gate) -> None:
    async def main() -> list[str]:
        before = threading.active_count()
        async with async_toolkit(tmp_path, gate) as toolkit:
            calls = [asyncio.ensure_future(toolkit.call(count(number))) for number in range(5000)]
            while toolkit.load.waiting < 5000 - 64:
                await asyncio.sleep(0.001)
            assert toolkit.load == Load(64, 5000 - 64, 0)
            assert threading.active_count() - before <= 64
            gate.opened.set()
            return [result.kind for result in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == ["text"] * 5000
    assert gate.most == 64


def test_what_is_too_much_is_refused_and_can_be_tried_again(tmp_path: Path, gate: Gate) -> None:
    async def main() -> None:
        async with async_toolkit(tmp_path, gate, Concurrency(threads=2, waiting=1)) as toolkit:
            running = [asyncio.ensure_future(toolkit.call(count(number))) for number in range(3)]
            while toolkit.load != Load(2, 1, 0):
                await asyncio.sleep(0.001)
            with pytest.raises(Overloaded, match=r"too many calls at once: 2 run; 1 calls wait already") as caught:
                await toolkit.invoke("count-words", {"text": "x"})
            assert (caught.value.code, caught.value.retriable, caught.value.tool_name) == (
                "OVERLOADED",
                True,
                "count-words",
            )
            gate.opened.set()
            assert [result.kind for result in await asyncio.gather(*running)] == ["text"] * 3
            assert (await toolkit.call(count())).kind == "text"

    asyncio.run(main())
    assert gate.done == 4


def test_a_call_that_waits_for_a_thread_ends_at_its_deadline_and_never_runs(tmp_path: Path, gate: Gate) -> None:
    async def main() -> None:
        async with async_toolkit(tmp_path, gate, Concurrency(threads=1)) as toolkit:
            running = asyncio.ensure_future(toolkit.call(count()))
            while not toolkit.load.running:
                await asyncio.sleep(0.001)
            with pytest.raises(ToolTimeout) as caught:
                await toolkit.with_options(deadline=0.05).invoke("count-words", {"text": "x"})
            assert caught.value.details["abandoned"] is False
            assert toolkit.load == Load(1, 0, 0)
            gate.opened.set()
            await running

    asyncio.run(main())
    assert gate.done == 1


def test_abandoned_handlers_are_counted_and_do_not_stop_the_others(tmp_path: Path, gate: Gate) -> None:
    with sync_toolkit(tmp_path, gate, Concurrency(threads=2)) as toolkit:
        # As many are left behind as there are threads: from then on they count.
        for load in (Load(0, 0, 1), Load(0, 0, 2), Load(1, 0, 2), Load(2, 0, 2)):
            deadline = 0.02
            while toolkit.load != load:  # on a busy machine a deadline may pass before the handler begins
                with pytest.raises(ToolTimeout):
                    toolkit.with_options(deadline=deadline).invoke("count-words", {"text": "x"})
                deadline *= 2
        with pytest.raises(ToolTimeout) as caught:
            toolkit.with_options(deadline=0.02).invoke("count-words", {"text": "x"})
        assert caught.value.details["abandoned"] is False  # it never got a thread
        gate.opened.set()
        wait_for(lambda: toolkit.load == Load(0, 0, 0))
        assert toolkit.with_options(deadline=WATCHDOG).invoke("count-words", {"text": "x"}).content is not None


@pytest.mark.parametrize("limits", [Concurrency(calls=2), Concurrency(by_tool={"count-words": 2})], ids=["all", "tool"])
def test_no_more_calls_run_than_the_limit_allows(tmp_path: Path, gate: Gate, limits: Concurrency) -> None:
    gate.opened.set()
    with sync_toolkit(tmp_path, gate, limits) as toolkit:
        results: list[str] = []
        threads = [
            threading.Thread(target=lambda: results.extend(toolkit.call(count()).kind for _ in range(20)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WATCHDOG)
    assert results == ["text"] * 160
    assert gate.most <= 2

    async def main() -> list[str]:
        async with async_toolkit(tmp_path, gate, limits) as toolkit:
            return [result.kind for result in await asyncio.gather(*(toolkit.call(count()) for _ in range(100)))]

    assert asyncio.run(main()) == ["text"] * 100
    assert gate.most <= 2


def test_a_limit_of_one_tool_leaves_the_others_alone(tmp_path: Path, gate: Gate) -> None:
    with sync_toolkit(tmp_path, gate, Concurrency(by_tool={"count-words": 1})) as toolkit:
        other = threading.Thread(target=toolkit.invoke, args=("shout", {"text": "x"}))
        running = [threading.Thread(target=toolkit.call, args=(count(),)) for _ in range(2)]
        for thread in running:
            thread.start()
        gate.wait_for(1)
        other.start()
        gate.wait_for(1)
        wait_for(lambda: toolkit.load.waiting)
        with pytest.raises(ToolTimeout):
            toolkit.with_options(deadline=0.05).invoke("count-words", {"text": "x"})
        gate.opened.set()
        for thread in (*running, other):
            thread.join(WATCHDOG)
    assert (gate.most, gate.done) == (2, 3)


def test_closing_ends_calls_that_wait_for_a_thread_and_loses_no_result(tmp_path: Path, gate: Gate) -> None:
    toolkit = sync_toolkit(tmp_path, gate, Concurrency(threads=1))
    ended: dict[str, list[object]] = {}

    def stream(number: int) -> None:
        ended[f"stream {number}"] = [
            event.value for event in toolkit.stream(count(number)) if isinstance(event, ToolResult)
        ]

    def call_all() -> None:
        ended["call_all"] = [result.value for result in toolkit.call_all([count(3), count(4)])]

    callers = [threading.Thread(target=stream, args=(number,), daemon=True) for number in (1, 2)]
    callers.append(threading.Thread(target=call_all, daemon=True))
    for caller in callers:
        caller.start()
        if caller is not callers[1]:
            gate.wait_for(1)  # the first has the thread, and `call_all` works in its own
    wait_for(lambda: toolkit.load.waiting == 2)
    toolkit.close()
    gate.opened.set()
    for caller in callers:
        caller.join(20)
    assert ended.get("stream 1") == ["x"]
    assert ended.get("stream 2") == ["TOOL_CANCELLED: the toolkit was closed"]
    assert ended.get("call_all") == ["x", "TOOL_CANCELLED: this toolkit has been closed"]


def test_a_handler_that_calls_its_own_toolkit_does_not_wait_for_itself(tmp_path: Path) -> None:
    def shout(args: Any, ctx: ToolContext) -> dict[str, str]:
        if args.times == 1:
            return {"text": args.text}
        results = toolkit.call_all([ToolCall("1", "shout", {"text": "x", "times": args.times - 1})] * 2)
        assert [result.kind for result in results] == ["data", "data"]
        return {"text": args.text}

    for limits in (Concurrency(threads=1), Concurrency(calls=1), Concurrency(by_tool={"shout": 1})):
        context_ = ToolkitContext(
            tmp_path, SecurityPolicy(default="allow"), calls=CallSettings(concurrency=limits, deadline=WATCHDOG)
        )
        with create_agent_toolkit(context_, packs=[Pack({"shout": shout})]) as toolkit:
            assert toolkit.invoke("shout", {"text": "x", "times": 3}).content.text == "x"


def test_a_slow_call_does_not_hold_up_those_behind_it(tmp_path: Path) -> None:
    """The first of forty waits until the last one has run."""
    ran: set[str] = set()
    last = threading.Event()

    def count_words(args: Any, ctx: ToolContext) -> dict[str, str]:
        if args.text == "0":
            assert last.wait(WATCHDOG)
        ran.add(args.text)
        if len(ran) == 39:
            last.set()
        return {"text": args.text}

    with sync_toolkit(tmp_path, count_words) as toolkit:
        calls = [ToolCall(str(number), "count-words", {"text": str(number)}) for number in range(40)]
        results = toolkit.call_all(calls)
    assert [result.value for result in results] == [call.id for call in calls]
    assert [result.kind for result in results] == ["text"] * 40


NO_THREADS = """
import asyncio, resource, sys, threading
from pathlib import Path
sys.path.insert(0, "tests/downstream")
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.runtime.workers import Workers
from toolkit import Pack, ToolCall

start = threading.Thread.start
def refuse(self):
    raise RuntimeError("can't start new thread")  # what Python says when the system gives no more
threading.Thread.start = refuse

context = ToolkitContext(sys.argv[1], SecurityPolicy(default="allow"))
with create_agent_toolkit(context, packs=[Pack({"count-words": lambda args, ctx: {"text": args.text}})]) as toolkit:
    results = toolkit.call_all([ToolCall(str(n), "count-words", {"text": "x"}) for n in range(50)])
    print([result.kind for result in results] == ["text"] * 50)
    print(toolkit.with_options(deadline=60).call(ToolCall("1", "count-words", {"text": "x"})).value)
"""


def test_without_threads_every_call_still_has_a_result(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_THREADS, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.stdout.splitlines() == [
        "True",
        "OVERLOADED: too many calls at once: 0 run; the system starts no more threads. Try again later",
    ], done.stderr


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"threads": 0}, "threads must be a whole number from 1 on, not 0"),
        ({"calls": True}, "calls must be a whole number from 1 on, not True"),
        ({"waiting": -1}, "waiting must be a whole number from 0 on, not -1"),
        ({"by_tool": {"bash": 0.5}}, r"by_tool\['bash'\] must be a whole number from 1 on, not 0.5"),
    ],
)
def test_limits_that_are_none(wrong: Any, words: str) -> None:
    with pytest.raises(SetupError, match=words):
        Concurrency(**wrong)


def test_a_limit_of_an_unknown_tool_is_told(tmp_path: Path) -> None:
    limits = Concurrency(by_tool={"shuot": 1})
    with pytest.raises(SetupError, match=r"by_tool names the unknown tool 'shuot'\. Did you mean 'shout'\?"):
        create_agent_toolkit(context(tmp_path, limits))


def test_a_thread_without_work_ends_and_another_one_takes_its_place() -> None:
    workers = Workers(idle_seconds=0.01)
    for _ in range(3):
        thread = workers.submit(threading.current_thread).result(30)
        thread.join(30)
        assert not thread.is_alive()


def test_no_work_is_lost_when_threads_end_all_the_time() -> None:
    workers = Workers(idle_seconds=0.0)
    assert [workers.submit(lambda number=number: number).result(30) for number in range(300)] == list(range(300))  # type: ignore[misc]
