"""What a program does and gives: its value, what it prints, its calls and its errors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from toolkit import (
    ContentBlock,
    InvalidArguments,
    ProgramCall,
    ProgramSettings,
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    ToolNotAllowed,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from toolkit.generated import ReadFileOutput


@pytest.fixture(scope="module")
def toolkit(one_toolkit: Toolkit) -> Toolkit:
    return one_toolkit


def run(toolkit: Toolkit, source: str, **inputs: object) -> object:
    result = toolkit.run_program(source, inputs=inputs)
    assert [str(error) for error in result.errors] == []
    return result.value


def create_limited(context: ToolkitContext, settings: ProgramSettings) -> Toolkit:
    state = Path(context.workspace).parent / "state"
    return create_agent_toolkit(ToolkitContext(context.workspace, context.policy, state_dir=state, programs=settings))


class TestValue:
    def test_the_last_expression_is_the_value(self, toolkit: Toolkit) -> None:
        assert run(toolkit, "x = 20\nx + 22") == 42

    def test_what_is_assigned_to_result_is_the_value(self, toolkit: Toolkit) -> None:
        assert run(toolkit, "result = [1, 2]\nprint('done')") == [1, 2]

    def test_result_inside_a_function_is_a_variable_of_that_function(self, toolkit: Toolkit) -> None:
        assert run(toolkit, "def f() -> int:\n    result = 1\n    return result\nf() + 1") == 2

    def test_a_program_without_either_has_no_value(self, toolkit: Toolkit) -> None:
        assert run(toolkit, "for number in range(3):\n    pass") is None

    def test_an_output_of_a_tool_is_a_value(self, toolkit: Toolkit) -> None:
        value = run(toolkit, "tools.read_file(path='a.txt')")
        assert ReadFileOutput.model_validate(value).content == "one\ntwo\n"

    def test_outputs_inside_of_lists_and_dicts_are_values(self, toolkit: Toolkit) -> None:
        value = run(toolkit, "{'files': [tools.read_file(path=p) for p in ('a.txt', 'b.txt')]}")
        assert isinstance(value, dict)
        assert [file["line_count"] for file in value["files"]] == [2, 1]

    def test_a_value_that_is_not_json_is_an_error_that_says_so(self, toolkit: Toolkit) -> None:
        result = toolkit.run_program("lambda: 1")
        (error,) = result.errors
        assert result.ran and error.kind == "run"
        assert "cannot be written as JSON" in error.message

    def test_a_value_that_is_too_large_is_an_error(self, context: ToolkitContext) -> None:
        with create_limited(context, ProgramSettings(value_bytes=100)) as toolkit:
            (error,) = toolkit.run_program("'x' * 100").errors
        assert error.message == (
            "the value of the program has 102 bytes; at most 100 are allowed: return less, or write it to a file with a tool"
        )


class TestOutput:
    def test_what_is_printed_is_the_output(self, toolkit: Toolkit) -> None:
        assert toolkit.run_program("print('a')\nprint('b', end='')").output == "a\nb"

    def test_long_output_keeps_its_head_and_tail(self, toolkit: Toolkit, context: ToolkitContext) -> None:
        with create_limited(context, ProgramSettings(output_bytes=20)) as toolkit:
            output = toolkit.run_program("print('a' * 50 + 'z' * 50)").output
        assert output == f"{'a' * 10}\n[... 81 bytes left out ...]\n{'z' * 9}\n"

    def test_lone_surrogates_are_printed_as_escapes(self, toolkit: Toolkit) -> None:
        assert toolkit.run_program(r"print('\ud800')").output == "\\ud800\n"


class TestCalls:
    def test_calls_are_listed_with_their_lines(self, toolkit: Toolkit) -> None:
        result = toolkit.run_program(
            "from toolkit import ToolkitError\n"
            "tools.read_file(path='a.txt')\n"
            "try:\n"
            "    tools.read_file(path='missing')\n"
            "except ToolkitError:\n"
            "    pass\n"
        )
        assert result.calls == (ProgramCall("read_file", 2), ProgramCall("read_file", 4, "TOOL_FAILED"))

    def test_calls_run_at_the_same_time_with_atools(self, toolkit: Toolkit) -> None:
        source = (
            "import asyncio\n"
            "first, second = await asyncio.gather(\n"
            "    atools.read_file(path='a.txt'),\n"
            "    atools.read_file(path='b.txt'),\n"
            ")\n"
            "[first.line_count, second.line_count]"
        )
        result = toolkit.run_program(source)
        assert result.value == [2, 1]
        assert sorted(call.line for call in result.calls) == [3, 4]

    def test_both_kinds_of_calls_can_be_mixed(self, toolkit: Toolkit) -> None:
        source = (
            "import asyncio\n"
            "later = asyncio.ensure_future(atools.read_file(path='a.txt'))\n"
            "await asyncio.sleep(0)\n"
            "now = tools.read_file(path='b.txt')\n"
            "[(await later).line_count, now.line_count]"
        )
        assert run(toolkit, source) == [2, 1]

    def test_a_failed_call_raises_the_error_of_the_toolkit(self, toolkit: Toolkit) -> None:
        source = (
            "from toolkit import ToolFailed\n"
            "try:\n"
            "    tools.read_file(path='missing')\n"
            "except ToolFailed as error:\n"
            "    result = [error.code, error.reason, error.tool_name, error.retriable]\n"
        )
        assert run(toolkit, source) == ["TOOL_FAILED", "NOT_FOUND", "read_file", False]

    def test_a_call_that_is_not_handled_ends_the_program_at_its_line(self, toolkit: Toolkit) -> None:
        result = toolkit.run_program("x = 1\ntools.read_file(path='missing')\nx")
        assert [str(error) for error in result.errors] == ["line 2: TOOL_FAILED: NOT_FOUND: 'missing' does not exist"]
        assert result.ran and not result.ok

    def test_arguments_are_validated_as_in_any_call(self, toolkit: Toolkit) -> None:
        (error,) = toolkit.run_program("tools.read_file(path='a.txt', max_lines=0)").errors
        assert error.line == 1
        assert error.message.startswith("INVALID_TOOL_ARGUMENTS")

    def test_media_that_calls_attach_are_part_of_the_result(self, context: ToolkitContext, workspace: Path) -> None:
        (workspace / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
        with create_agent_toolkit(context) as toolkit:
            result = toolkit.run_program("tools.read_file(path='dot.png').media_type")
        assert result.value == "image/png"
        assert [block.media_type for block in result.attachments] == ["image/png"]
        assert isinstance(result.attachments[0], ContentBlock)

    def test_more_calls_than_allowed_end_the_program(self, context: ToolkitContext) -> None:
        with create_limited(context, ProgramSettings(calls=3)) as toolkit:
            result = toolkit.run_program("for _ in range(10):\n    tools.done(message='x')")
        assert [str(error) for error in result.errors] == ["the program made more than 3 calls"]
        assert len(result.calls) == 3


class TestErrors:
    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("x = 1\n1 / 0", "line 2: ZeroDivisionError: division by zero"),
            ("def f() -> int:\n    return [1][5]\nf()", "line 2: IndexError: list index out of range"),
            ("raise ValueError('no')", "line 1: ValueError: no"),
            ("def f(n: int) -> int:\n    return f(n + 1)\nf(0)", "line 2: RecursionError: maximum recursion depth"),
        ],
    )
    def test_an_exception_is_reported_with_its_line(self, toolkit: Toolkit, source: str, message: str) -> None:
        (error,) = toolkit.run_program(source).errors
        assert error.kind == "run"
        assert str(error).startswith(message)

    def test_a_program_that_never_ends_is_ended(self, context: ToolkitContext) -> None:
        with create_limited(context, ProgramSettings(seconds=3)) as toolkit:
            assert [str(error) for error in toolkit.run_program("import time\ntime.sleep(600)").errors] == [
                "the program took longer than 3 s"
            ]
            assert toolkit.run_program("1 + 1").value == 2

    def test_a_program_that_uses_too_much_memory_is_ended(self, context: ToolkitContext) -> None:
        with create_limited(context, ProgramSettings(memory=200 << 20)) as toolkit:
            assert [str(error) for error in toolkit.run_program("len(bytearray(1 << 30))").errors] == [
                "the program used more than 200 MiB of memory"
            ]

    def test_inputs_have_python_names_and_json_values(self, toolkit: Toolkit) -> None:
        with pytest.raises(InvalidArguments, match="must be a Python name, not 'a b'"):
            toolkit.run_program("1", inputs={"a b": 1})
        with pytest.raises(InvalidArguments, match="inputs must be JSON values or models"):
            toolkit.run_program("1", inputs={"a": object()})


class TestInputs:
    def test_inputs_are_attributes(self, toolkit: Toolkit) -> None:
        assert run(toolkit, "[inputs.n + 1, inputs.words[0].upper()]", n=1, words=["a"]) == [2, "A"]

    def test_a_model_is_an_input(self, toolkit: Toolkit) -> None:
        file = toolkit.tools.read_file(path="a.txt")
        assert run(toolkit, "inputs.file.line_count", file=file) == 2


class TestPolicy:
    def test_a_denied_tool_refuses_the_program_before_it_starts(self, context: ToolkitContext, workspace: Path) -> None:
        source = "tools.write_file(path='new.txt', content='x')\ntools.exec_command(command=['ls'])"
        with create_agent_toolkit(context) as toolkit:
            result = toolkit.run_program(source)
        (error,) = result.errors
        assert (error.line, error.kind, result.ran, result.calls) == (2, "policy", False, ())
        assert "exec_command" in error.message
        assert not (workspace / "new.txt").exists()

    def test_rules_on_what_a_call_touches_hold_in_programs(self, workspace: Path, tmp_path: Path) -> None:
        from toolkit import Rule

        policy = SecurityPolicy(
            default="deny", tools={"read_file": "allow"}, rules=[Rule("deny", tools=["read_file"], path="b.txt")]
        )
        with create_agent_toolkit(ToolkitContext(workspace, policy, state_dir=tmp_path / "state")) as toolkit:
            result = toolkit.run_program("tools.read_file(path='a.txt')\ntools.read_file(path='b.txt')")
        assert [call.error for call in result.calls] == [None, "TOOL_NOT_ALLOWED"]

    def test_programs_need_the_permission_to_execute(self, workspace: Path, tmp_path: Path) -> None:
        context = ToolkitContext(
            workspace, SecurityPolicy(default="allow"), permissions={"read"}, state_dir=tmp_path / "state"
        )
        with create_agent_toolkit(context) as toolkit, pytest.raises(ToolNotAllowed, match="permission 'execute'"):
            toolkit.run_program("1")

    def test_there_are_no_programs_without_a_sandbox(self, workspace: Path, tmp_path: Path) -> None:
        context = ToolkitContext(
            workspace, SecurityPolicy(default="allow"), sandbox="unsafe-none", state_dir=tmp_path / "state"
        )
        with create_agent_toolkit(context) as toolkit:
            assert toolkit.run_program("1").value == 1  # the machine has a full tier, and programs use nothing else


def test_the_audit_log_has_the_program_and_the_lines_of_its_calls(context: ToolkitContext, tmp_path: Path) -> None:
    with create_agent_toolkit(context) as toolkit:
        result = toolkit.run_program("x = 1\ntools.read_file(path='a.txt')")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(line["event"], line.get("line")) for line in lines] == [("program", None), ("start", 2), ("end", 2)]
    assert {line["program"] for line in lines} == {result.program_id}
    assert lines[0]["tools"] == ["read_file"]


def test_an_async_toolkit_runs_programs_in_its_loop(context: ToolkitContext) -> None:
    async def main() -> object:
        async with create_async_agent_toolkit(context) as toolkit:
            return (await toolkit.run_program("tools.read_file(path='a.txt').line_count")).value

    assert asyncio.run(main()) == 2


def test_a_closed_toolkit_runs_no_programs(context: ToolkitContext) -> None:
    toolkit = create_agent_toolkit(context)
    toolkit.close()
    with pytest.raises(Exception, match="closed"):
        toolkit.run_program("1")
