"""However a program ends, nothing of it is alive afterwards. Time limits here are watchdogs, not measurements."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.ways import needs
from tests.programs.hostile.world import ALLOWED, SOURCE, WATCHDOG, World, wait_for
from tests.projects import REPOSITORY
from toolkit import (
    CancelSignal,
    Pack,
    ProgramCall,
    ProgramSettings,
    ToolContext,
    Toolkit,
    ToolkitContext,
    ToolkitError,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from toolkit.builtin import BUILTIN
from toolkit.generated import GlobInput, GlobOutput

# Each is ended when it has done what it wanted: ``done`` with this message cancels the program.
NEVER_ENDING = {
    "sleeps": "done(message='stop'); forever()",
    "works": "threading.Thread(target=lambda: done(message='stop')).start()\nwhile True: pass",
    "ignores signals": "[signal.signal(n, signal.SIG_IGN) for n in range(1, 32) if n not in (9, 17, 19)]; done(message='stop'); forever()",
    "a child": "child(forever); done(message='stop'); forever()",
    "a child in a session of its own": "child(lambda: (os.setsid(), forever())); done(message='stop'); forever()",
    "a daemon": "os.waitpid(child(lambda: (os.setsid(), child(lambda: (os.closerange(0, 99), os.chdir('/'), forever())))), 0); done(message='stop'); forever()",
    "a child that ignores signals": "child(lambda: ([signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)], forever())); done(message='stop'); forever()",
    "children that change all the time": "def hydra():\n    while True:\n        if os.fork(): os._exit(0)\n        os.setsid()\nchild(hydra); done(message='stop'); forever()",
    "stopped": "child(lambda: (os.kill(os.getpid(), 19), forever())); done(message='stop'); os.kill(os.getpid(), 19)",
    "threads": "[threading.Thread(target=forever).start() for _ in range(50)]; done(message='stop'); forever()",
}  # fmt: skip


@pytest.mark.sample
@pytest.mark.parametrize("name", NEVER_ENDING)
def test_a_program_that_never_ends_leaves_nothing(each_world: World, name: str) -> None:
    with each_world.untouched():
        result = each_world.run(NEVER_ENDING[name])
        assert [error.message for error in result.errors] == ["it was stopped"]


@pytest.mark.sample
@pytest.mark.parametrize(
    "code",
    [
        "child(forever); answer = 1",
        "child(lambda: (os.setsid(), forever())); answer = 1",
        "threading.Thread(target=forever).start(); answer = 1",
        "child(lambda: (child(forever), os._exit(0))); answer = 1",
    ],
)
def test_what_a_program_leaves_behind_ends_with_it(each_world: World, code: str) -> None:
    with each_world.untouched():
        assert each_world.run(code).value == 1


@pytest.mark.every_row
@pytest.mark.parametrize(
    "code",
    [
        "answer = [refused(os.kill, 1, 9), refused(os.kill, os.getppid(), 9)]",
        "os.kill(-1, 9); forever()",
        "os.killpg(0, 9); forever()",
        "os.kill(os.getpid(), 9)",
        "child(lambda: os.kill(-1, 9)); forever()",
        "os.close(sink); child(forever); forever()",
    ],
)
def test_killing_all_around_it_ends_only_itself(world: World, code: str) -> None:
    with world.unharmed():
        result = world.run(code)
        assert result.errors or result.value


def test_a_forgotten_process_would_be_found(world: World) -> None:
    """The control: while a session keeps its interpreter, the child of its program is there."""
    with world.toolkit.program_session() as session:
        session.run(SOURCE, inputs=world.inputs("child(forever); answer = 1"), checker="off")
        assert len(world.survivors()) == 2
    assert world.survivors() == []


def test_time_ends_a_program(world: World) -> None:
    with world.unharmed():
        (error,) = world.run("forever()", deadline=2).errors
        assert error.message == "the program took longer than 2 s"


AGENT = """
import sys
from pathlib import Path
from tests.programs.hostile.world import SOURCE, World
world = World(Path(sys.argv[1]), sys.argv[2])
world.mark = sys.argv[3]
world.on_done = lambda message: print(message, flush=True)
world.toolkit.run_program(SOURCE, inputs=world.inputs(sys.argv[4]), checker="off")
"""


@pytest.mark.sample
@pytest.mark.parametrize("name", ["sleeps", "a daemon", "children that change all the time"])
@pytest.mark.parametrize("way", ["full", "reduced"])
def test_nothing_survives_when_the_agent_is_killed(world: World, tmp_path: Path, way: str, name: str) -> None:
    needs("full" if way == "full" else "reduced")
    command = [sys.executable, "-c", AGENT, str(tmp_path / "agent"), way, world.mark, NEVER_ENDING[name]]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as agent:
        assert agent.stdout
        assert agent.stdout.readline() == b"stop\n"
        assert world.survivors()
        agent.kill()
    wait_for(lambda: not world.survivors(), "something survived")


def test_a_toolkit_that_is_closed_ends_its_programs(tmp_path: Path) -> None:
    world = World(tmp_path)
    closing: list[threading.Thread] = []

    def close(message: str) -> None:
        closing.append(threading.Thread(target=world.toolkit.close))
        closing[0].start()

    world.on_done = close
    code = "child(forever); done(message='close'); forever()"
    result = world.toolkit.run_program(SOURCE, inputs=world.inputs(code), checker="off")
    closing[0].join(WATCHDOG)
    assert [error.message for error in result.errors] == ["the toolkit was closed"]
    assert world.survivors() == []
    with pytest.raises(ToolkitError, match="closed"):
        world.toolkit.run_program("1", checker="off")


class Held:
    """A tool whose calls go on until the test releases them, whatever their signal says."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.release = threading.Event()

    def __call__(self, args: GlobInput, ctx: ToolContext) -> GlobOutput:
        self.begun.set()
        self.release.wait(WATCHDOG)
        raise AssertionError("nobody reads this")


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.release.set()


@pytest.fixture
def context(tmp_path: Path) -> ToolkitContext:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return ToolkitContext(workspace, ALLOWED, state_dir=tmp_path / "state", programs=ProgramSettings(seconds=WATCHDOG))


IN_A_CALL = {"sync": "tools.glob(pattern='*')", "async": "await atools.glob(pattern='*')"}


def packs(held: Held) -> list[Pack]:
    return [BUILTIN.without("glob"), Pack({"glob": held})]


@pytest.mark.parametrize("kind", IN_A_CALL)
def test_a_signal_ends_a_program_in_a_call(context: ToolkitContext, held: Held, kind: str) -> None:
    stop = CancelSignal()

    def cancel() -> None:
        held.begun.wait(WATCHDOG)
        stop.cancel("enough")

    threading.Thread(target=cancel, daemon=True).start()
    with create_agent_toolkit(context, packs=packs(held)) as toolkit:
        result = toolkit.with_options(signal=stop).run_program(IN_A_CALL[kind], checker="off")
        assert [error.message for error in result.errors] == ["enough"]
        assert result.calls == (ProgramCall("glob", 1, "TOOL_CANCELLED"),)
        assert next_works(toolkit)


@pytest.mark.parametrize("kind", IN_A_CALL)
def test_a_deadline_ends_a_program_in_a_call(context: ToolkitContext, held: Held, kind: str) -> None:
    with create_agent_toolkit(context, packs=packs(held)) as toolkit:
        session = toolkit.with_options(deadline=3).program_session()
        # Its interpreter has started, so that the time is enough for the call on a busy machine, too.
        wait_for(lambda: session.run("1", checker="off").ok, "no program ran")
        result = session.run(IN_A_CALL[kind], checker="off")
        (error,) = result.errors
        assert "deadline" in error.message or error.message == "the program took longer than 3 s"
        assert [call.tool for call in result.calls] == ["glob"]
        assert next_works(toolkit)


@pytest.mark.parametrize("kind", IN_A_CALL)
@pytest.mark.parametrize("how", ["signal", "task"])
def test_an_async_program_ends_in_a_call(context: ToolkitContext, held: Held, kind: str, how: str) -> None:
    async def main() -> None:
        stop = CancelSignal()
        async with create_async_agent_toolkit(context, packs=packs(held)) as toolkit:
            view = toolkit.with_options(signal=stop)
            task = asyncio.ensure_future(view.run_program(IN_A_CALL[kind], checker="off"))
            await asyncio.to_thread(held.begun.wait, WATCHDOG)
            if how == "task":
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                stop.cancel("enough")
                result = await task
                assert [error.message for error in result.errors] == ["enough"]
                assert [call.tool for call in result.calls] == ["glob"]
            assert (await toolkit.run_program("1 + 1", checker="off")).value == 2

    asyncio.run(main())


@pytest.mark.parametrize("kind", IN_A_CALL)
def test_a_deadline_ends_an_async_program_in_a_call(context: ToolkitContext, held: Held, kind: str) -> None:
    async def main() -> None:
        async with create_async_agent_toolkit(context, packs=packs(held)) as toolkit:
            session = toolkit.with_options(deadline=3).program_session()
            while not (await session.run("1", checker="off")).ok:
                pass
            result = await session.run(IN_A_CALL[kind], checker="off")
            assert result.errors and [call.tool for call in result.calls] == ["glob"]
            assert (await toolkit.run_program("1 + 1", checker="off")).value == 2

    asyncio.run(main())


def test_a_signal_ends_a_program_that_has_not_started(context: ToolkitContext) -> None:
    stop = CancelSignal()
    stop.cancel("enough")
    with create_agent_toolkit(context) as toolkit:
        view = toolkit.with_options(signal=stop)
        for result in (view.run_program("1", checker="off"), view.run_program("1", checker="mypy")):
            (error,) = result.errors
            assert "enough" in error.message and not result.ran
        assert next_works(toolkit)


def next_works(toolkit: Toolkit) -> bool:
    return bool(toolkit.run_program("1 + 1", checker="off").value == 2)
