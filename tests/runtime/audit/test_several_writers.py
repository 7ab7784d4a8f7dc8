"""Several writers of one log: forked processes, others that hold locks, signal handlers, an event loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime.audit.programs import run_well, start_program
from toolkit.runtime.audit import verify

MODES = pytest.mark.parametrize("options", ["", "batch_seconds=0.02"], ids=["at once", "batched"])


@MODES
def test_parent_and_forked_children_write_one_chain(tmp_path: Path, options: str) -> None:
    run_well(
        f"""
        toolkit = make({options})
        toolkit.call(call(0))
        children = []
        for _ in range(3):
            child = os.fork()
            if not child:
                for number in range(200):
                    toolkit.call(call(number))
                toolkit.close()
                os._exit(0)
            children.append(child)
        for number in range(200):
            toolkit.call(call(number))
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        toolkit.close()
        """,
        tmp_path,
    )
    report = verify(tmp_path / "audit.jsonl")
    assert (report.problems, report.head.lines, report.open_calls) == ((), 2 + 4 * 400, 0)


def test_what_waits_in_the_parent_is_written_once(tmp_path: Path) -> None:
    run_well(
        """
        toolkit = make(batch_seconds=60)
        for number in range(5):
            toolkit.call(call(number))
        assert not os.path.getsize(LOG)
        child = os.fork()
        if not child:
            toolkit.call(call(100))
            toolkit.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        toolkit.close()
        """,
        tmp_path,
    )
    log = tmp_path / "audit.jsonl"
    assert verify(log).problems == ()
    names = [json.loads(line)["call_id"] for line in log.read_text().splitlines()]
    assert names == ["100", "100", "0", "0", "1", "1", "2", "2", "3", "3", "4", "4"]


def test_a_fork_while_another_thread_writes(tmp_path: Path) -> None:
    run_well(
        """
        toolkit = make()
        toolkit.call(call(0))  # a child cannot import what another thread of its parent was importing
        stop = threading.Event()
        def write():
            while not stop.is_set():
                toolkit.call(call(1))
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(20):
            child = os.fork()
            if not child:
                toolkit.call(call(2))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        writer.join()
        """,
        tmp_path,
    )
    assert verify(tmp_path / "audit.jsonl").problems == ()


@pytest.mark.parametrize("make", ["make()", "make_async()"])
def test_who_locks_the_log_itself_keeps_nobody_waiting(tmp_path: Path, make: str) -> None:
    printed = run_well(
        f"""
        toolkit = {make}
        other = open(LOG)
        fcntl.flock(other, fcntl.LOCK_EX)
        result = toolkit.call(call(1))
        print((asyncio.run(result) if asyncio.iscoroutine(result) else result).value)
        """,
        tmp_path,
    )
    assert printed == "{'sum': 2}\n"


@pytest.mark.parametrize("make", ["make()", "make_async()"])
def test_a_call_waits_for_the_log_no_longer_than_its_deadline(tmp_path: Path, make: str) -> None:
    printed = run_well(
        f"""
        toolkit = {make}
        lock = hold_lock()
        result = toolkit.with_options(deadline=0.2).call(call(1))
        print((asyncio.run(result) if asyncio.iscoroutine(result) else result).value)
        print(ran)
        lock.release()
        result = toolkit.call(call(2))
        print((asyncio.run(result) if asyncio.iscoroutine(result) else result).value)
        """,
        tmp_path,
    )
    assert printed.splitlines() == [
        "TOOL_TIMEOUT: the call took longer than its deadline of 0.2 s",
        "[]",
        "{'sum': 3}",
    ]
    log = tmp_path / "audit.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted((record["call_id"], record["event"]) for record in records) == [
        ("1", "end"),
        ("2", "end"),
        ("2", "start"),
    ]
    assert verify(log).problems == ()


@pytest.mark.parametrize("options", ["", "fsync=True", "batch_seconds=0.02"])
def test_an_event_loop_goes_on_while_the_log_must_wait(tmp_path: Path, options: str) -> None:
    """The lock is given back by the event loop, so a call that blocked it would never end."""
    printed = run_well(
        f"""
        async def main():
            async with make_async({options}) as toolkit:
                lock = hold_lock()
                calling = asyncio.ensure_future(toolkit.call(call(1)))
                for _ in range(100):
                    await asyncio.sleep(0)
                lock.release()
                print((await calling).value)
        asyncio.run(main())
        """,
        tmp_path,
    )
    assert printed == "{'sum': 2}\n"
    report = verify(tmp_path / "audit.jsonl")
    assert (report.head.lines, report.problems, report.open_calls) == (2, (), 0)


def test_a_signal_handler_that_interrupts_a_write_is_refused_and_the_chain_holds(tmp_path: Path) -> None:
    printed = run_well(
        """
        toolkit = make()
        lock = hold_lock()
        def handle(number, frame):
            print(toolkit.call(call(7)).value)
            lock.release()
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        print(toolkit.call(call(1)).value)  # waits for the lock until the handler has run
        print(toolkit.call(call(2)).value, ran)
        toolkit.close()
        """,
        tmp_path,
    )
    assert printed.splitlines() == [
        "TOOL_FAILED: CONFLICT: nothing was run: this is called by a signal handler that interrupted a write to the audit"
        " log; call again outside of it",
        "{'sum': 2}",
        "{'sum': 3} [1, 2]",
    ]
    log = tmp_path / "audit.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {(record["call_id"], record.get("outcome")) for record in records if record["event"] == "end"} == {
        ("1", "ok"),
        ("2", "ok"),
        ("7", "TOOL_FAILED"),
    }
    assert verify(log).problems == () and verify(log).open_calls == 0


def test_signal_handlers_call_a_batched_toolkit_at_any_moment(tmp_path: Path) -> None:
    printed = run_well(
        """
        toolkit = make(batch_seconds=0.01)
        toolkit.call(call(0))  # the modules of a tool are imported at its first call
        answers = []
        def handle(number, frame):
            answers.append(toolkit.call(call(7)).value)
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        others = 0
        while len(answers) < 100:
            assert toolkit.call(call(1)).value == {"sum": 2}
            others += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        toolkit.close()
        assert all(answer == {"sum": 8} for answer in answers), answers
        print(2 * (others + len(answers) + 1))
        """,
        tmp_path,
    )
    report = verify(tmp_path / "audit.jsonl")
    assert (report.problems, report.head.lines) == ((), int(printed))


@pytest.mark.slow
@MODES
def test_processes_rotate_one_log(tmp_path: Path, options: str) -> None:
    code = f"""
    with make(max_bytes=5000, {options}) as toolkit:
        for number in range(150):
            toolkit.call(call(number))
    """
    writers = [start_program(code, tmp_path) for _ in range(3)]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert (writer.returncode, errors) == (0, "")

    report = verify(tmp_path / "audit.jsonl")
    assert (report.problems, report.head.lines, report.open_calls) == ((), 900, 0)
