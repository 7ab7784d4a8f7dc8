"""One toolkit used by many: threads, sessions, forks; nothing is left open and nothing is mixed up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.programs.hostile.world import SOURCE, WATCHDOG, World, wait_for
from tests.projects import REPOSITORY
from toolkit import ProgramResult, ToolkitError


def honest(world: World, source: str = "1 + 1") -> ProgramResult:
    return world.toolkit.run_program(source, checker="off")


def run_in_threads(count: int, act: object) -> None:
    assert callable(act)
    threads = [threading.Thread(target=act, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)


def test_several_threads_run_programs(world: World) -> None:
    found: dict[int, object] = {}
    world.on_done = world.said.append

    def run(number: int) -> None:
        source = f"[tools.done(message='{number}').message for _ in range(5)]"
        found[number] = honest(world, source).value

    run_in_threads(6, run)
    assert found == {number: [str(number)] * 5 for number in range(6)}


def test_two_threads_share_a_session(world: World) -> None:
    with world.toolkit.program_session() as session:
        session.run("counted = []", checker="off")
        run_in_threads(4, lambda number: session.run(f"counted.append({number})", checker="off"))
        assert sorted(session.run("counted", checker="off").value) == [0, 1, 2, 3]


def test_a_session_that_is_reset_while_it_runs_waits_for_the_program(world: World) -> None:
    with world.toolkit.program_session() as session:
        resets = [threading.Thread(target=session.reset)]
        world.on_done = lambda message: resets[0].start()
        result = session.run("x = tools.done(message='reset').message\nx", checker="off")
        resets[0].join(WATCHDOG)
        assert result.value == "reset"
        (error,) = session.run("x", checker="off").errors
        assert "NameError" in error.message


# Makes a call when the toolkit has read the end of the program, and then takes another name, so that the test can wait.
LATE = """
import fcntl
send, ended = type(connection).send, threading.Event()

def send_and_tell(self, head, body=b""):
    send(self, head, body)
    if "end" in head:
        ended.set()

def call_late():
    ended.wait()
    while fcntl.ioctl(sink, 0x541B, bytes(4)) != bytes(4):  # FIONREAD: what is still in the pipe
        pass
    put(call(77, "done", {"message": "late"}))
    libc.prctl(15, (inputs.mark + "2").encode(), 0, 0, 0)
    forever()

type(connection).send = send_and_tell
threading.Thread(target=call_late, daemon=True).start()
"""


def test_a_program_that_goes_on_after_its_end_ends_its_session(world: World) -> None:
    """Its call is not made in the name of the next program."""
    world.on_done = world.said.append
    said = len(world.said)
    with world.toolkit.program_session() as session:
        assert session.run(SOURCE, inputs=world.inputs(LATE), checker="off").ok
        wait_for(lambda: world.survivors(f"{world.mark}2"), "the late call was not made")
        (error,) = session.run("tools.done(message='next').message", checker="off").errors
        assert error.message == "the interpreter was ended: a program that had ended went on with calls of tools"
        assert world.survivors() == []
        assert session.run("tools.done(message='third').message", checker="off").value == "third"
    assert world.said[said:] == ["third"]


def test_a_session_cannot_be_used_with_a_closed_toolkit(tmp_path: Path) -> None:
    world = World(tmp_path)
    session = world.toolkit.program_session()
    session.run(SOURCE, inputs=world.inputs("child(forever)"), checker="off")
    world.toolkit.close()
    assert world.survivors() == []
    with pytest.raises(ToolkitError, match="closed"):
        session.run("1", checker="off")
    session.close()


def test_a_session_that_nobody_holds_is_ended(world: World) -> None:
    session = world.toolkit.program_session()
    session.run(SOURCE, inputs=world.inputs("child(forever)"), checker="off")
    assert world.survivors()
    del session
    assert world.survivors() == []


def interpreters_of(pid: int) -> list[int]:
    """The interpreters of programs among the descendants of a process."""
    found, pending = [], [pid]
    while pending:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
            for task in os.listdir(f"/proc/{pending[0]}/task"):
                pending += map(int, Path(f"/proc/{pending[0]}/task/{task}/children").read_text().split())
            if b"inside_start.py" in Path(f"/proc/{pending[0]}/cmdline").read_bytes():
                found.append(pending[0])
        del pending[0]
    return found


def kill_all(pids: list[int]) -> list[int]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def test_a_spare_interpreter_that_died_is_replaced(tmp_path: Path) -> None:
    world = World(tmp_path)
    honest(world)
    wait_for(lambda: interpreters_of(os.getpid()), "there is no spare interpreter")
    # What was found may still be the interpreter of the first program, and the spare one be on its way.
    wait_for(lambda: not kill_all(interpreters_of(os.getpid())), "the spare interpreter did not die")
    assert honest(world).value == 2
    world.close()


LEAVING = """
import gc, os, sys, threading
from pathlib import Path
from tests.programs.hostile.world import World, wait_for
SPARE = 16  # more than a spare interpreter has of either: it is prepared in another thread, so it is there or not
def counts():
    return len(os.listdir("/proc/self/fd")), threading.active_count()
at_first = counts()
world = World(Path(sys.argv[1]))
endings = ["answer = 1", "os._exit(1)", "put(b'x' * 99)", "raise ValueError", "os.close(sink)"]
world.run("answer = 1")
before = counts()
for number in range(int(sys.argv[2])):
    world.run(endings[number % len(endings)])
after = counts()
assert after[0] - before[0] < SPARE and after[1] - before[1] < SPARE, (before, after)
world.close()
del world
gc.collect()  # the descriptor of the workspace is held as long as somebody has the files
wait_for(lambda: counts() == at_first, f"{at_first} became {counts()}")
"""


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.whole)])
def test_programs_leave_no_descriptors_and_threads(tmp_path: Path, count: int) -> None:
    """In a process of its own, where nothing else opens anything."""
    run_script(LEAVING, str(tmp_path), str(count))


def run_script(code: str, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True, timeout=2 * WATCHDOG)


FORKING = """
import os, sys
from pathlib import Path
from tests.programs.hostile.world import World
world = World(Path(sys.argv[1]))
world.on_done = print
def run(source):
    result = world.toolkit.run_program(source, checker="off")
    return result.value if result.ok else result.errors
with world.toolkit.program_session() as session:
    session.run("x = 1", checker="off")
    assert run("1 + 1") == 2
    child = os.fork()
    if child == 0:
        assert run("2 + 2") == 4
        assert "is gone" in str(session.run("x", checker="off").errors), "the session of the parent was used"
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert run("3 + 3") == 6
    assert session.run("x", checker="off").value == 1
world.close()
"""


def test_a_fork_of_the_agent_shares_no_interpreter(tmp_path: Path) -> None:
    run_script(FORKING, str(tmp_path))
