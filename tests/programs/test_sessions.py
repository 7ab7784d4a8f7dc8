"""Programs that share their variables."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolkit import (
    ProgramSettings,
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    create_agent_toolkit,
    create_async_agent_toolkit,
)


@pytest.fixture(scope="module")
def toolkit(one_toolkit: Toolkit) -> Toolkit:
    return one_toolkit


def test_a_program_sees_the_variables_and_types_of_the_ones_before_it(toolkit: Toolkit) -> None:
    with toolkit.program_session() as session:
        assert session.run("file = tools.read_file(path='a.txt')").errors == ()
        assert session.run("file.line_count + 1").value == 3
        (error,) = session.run("file.lines").errors
        assert error.kind == "type"
        assert str(error).startswith('line 1: ReadFileOutput has no attribute "lines"; it has path, content,')


def test_a_refused_program_changes_nothing(toolkit: Toolkit) -> None:
    with toolkit.program_session() as session:
        session.run("count = 1")
        assert not session.run("count = 2\ntools.read_flie(path='a.txt')").ran
        assert session.run("count").value == 1


def test_a_program_that_failed_keeps_what_it_did_before(toolkit: Toolkit) -> None:
    with toolkit.program_session() as session:
        assert not session.run("count = 2\n1 / 0").ok
        assert session.run("count").value == 2


def test_functions_and_imports_stay(toolkit: Toolkit) -> None:
    with toolkit.program_session() as session:
        session.run("import json\ndef double(n: int) -> int:\n    return 2 * n")
        assert session.run("json.dumps(double(4))").value == "8"


def test_reset_forgets_everything(toolkit: Toolkit) -> None:
    with toolkit.program_session() as session:
        session.run("kept = 1")
        session.reset()
        assert [str(error) for error in session.run("kept").errors] == ['line 1: the name "kept" is not defined']


def test_the_inputs_are_those_of_the_last_program(toolkit: Toolkit) -> None:
    with toolkit.program_session() as session:
        assert session.run("first = inputs.n", inputs={"n": 1}).ok
        assert session.run("[first, inputs.n]", inputs={"n": 2}).value == [1, 2]


def test_sessions_do_not_see_each_other(toolkit: Toolkit) -> None:
    with toolkit.program_session() as first, toolkit.program_session() as second:
        first.run("count = 1")
        assert not second.run("count", checker="off").ok
        assert first.run("count").value == 1


def test_a_program_that_was_ended_by_a_limit_takes_the_variables_with_it(workspace: Path, tmp_path: Path) -> None:
    context = ToolkitContext(
        workspace,
        SecurityPolicy(default="deny"),
        state_dir=tmp_path / "state",
        programs=ProgramSettings(seconds=3),
    )
    with create_agent_toolkit(context) as toolkit, toolkit.program_session() as session:
        session.run("kept = 1")
        assert not session.run("import time\ntime.sleep(600)").ok
        assert [str(error) for error in session.run("kept").errors] == ['line 1: the name "kept" is not defined']


def test_sessions_of_an_async_toolkit(context: ToolkitContext) -> None:
    async def main() -> object:
        async with create_async_agent_toolkit(context) as toolkit, toolkit.program_session() as session:
            await session.run("file = await atools.read_file(path='a.txt')")
            return (await session.run("file.line_count")).value

    assert asyncio.run(main()) == 2
