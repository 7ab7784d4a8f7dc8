"""The built-in tool ``run_program``: what a model sends and reads, and what a person approves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from toolkit import (
    ApprovalRequest,
    Approve,
    CancelSignal,
    Deny,
    Progress,
    SecurityPolicy,
    ToolCall,
    Toolkit,
    ToolkitContext,
    ToolNotAllowed,
    create_agent_toolkit,
    create_async_agent_toolkit,
)

POLICY = SecurityPolicy(default="deny", tools={"run_program": "allow", "read_file": "allow", "write_file": "allow"})


def make(workspace: Path, tmp_path: Path, policy: SecurityPolicy = POLICY) -> Toolkit:
    return create_agent_toolkit(ToolkitContext(workspace, policy, state_dir=tmp_path / "state"))


def test_a_default_does_not_cover_it(workspace: Path, tmp_path: Path) -> None:
    with make(workspace, tmp_path, SecurityPolicy(default="allow")) as toolkit:
        assert "run_program" not in [tool.name for tool in toolkit.get_allowed_tools()]
        with pytest.raises(ToolNotAllowed, match="must be named by the policy"):
            toolkit.tools.run_program(source="1")


def test_a_model_reads_the_value_and_the_output(workspace: Path, tmp_path: Path) -> None:
    with make(workspace, tmp_path) as toolkit:
        message = toolkit.invoke(
            "run_program",
            {
                "source": "print('hi')\nint(inputs.n) + tools.read_file(path='a.txt').line_count",
                "inputs": {"n": "40"},
            },
        )
    assert message.content.value == 42
    assert [call.tool for call in message.content.calls] == ["read_file"]
    assert message.text() == "output:\nhi\nvalue: 42"


def test_a_model_reads_what_to_fix(workspace: Path, tmp_path: Path) -> None:
    source = "file = tools.read_file(pth='a.txt')\ntools.bash(command='ls')"
    with make(workspace, tmp_path) as toolkit:
        text = toolkit.invoke("run_program", {"source": source}).text()
    assert text.splitlines() == [
        "The program was not run. Fix these lines and send it again:",
        'line 1: read_file has no argument "pth"; did you mean "path"?',
        "line 2: 'bash' is not allowed: the policy's default is deny",
    ]


def test_a_model_reads_what_has_happened_before_a_failure(workspace: Path, tmp_path: Path) -> None:
    source = "tools.write_file(path='new.txt', content='x')\ntools.read_file(path='missing')"
    with make(workspace, tmp_path) as toolkit:
        text = toolkit.invoke("run_program", {"source": source}).text()
    assert text.splitlines() == [
        "The program failed:",
        "line 2: TOOL_FAILED: NOT_FOUND: 'missing' does not exist",
        "It had made these calls: write_file (line 1), read_file (line 2, TOOL_FAILED)",
    ]


def test_a_large_value_is_kept_in_the_output_cache(workspace: Path, tmp_path: Path) -> None:
    with make(workspace, tmp_path) as toolkit:
        message = toolkit.invoke("run_program", {"source": "['line'] * 100_000"})
        assert message.output_ref is not None
        assert len(message.text()) < 100_000
        assert len(message.content.value) == 100_000


def test_a_program_does_not_run_programs(workspace: Path, tmp_path: Path) -> None:
    with make(workspace, tmp_path) as toolkit:
        content = toolkit.invoke("run_program", {"source": "tools.run_program(source='1')"}).content
    assert not content.ran
    assert content.errors[0].kind == "gate"


def test_an_approver_sees_the_tools_that_it_names(workspace: Path, tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approve | Deny:
        asked.append(request)
        return Approve() if request.tool_name == "run_program" else Deny("not this one")

    policy = SecurityPolicy(default="deny", tools={"run_program": "ask", "read_file": "allow", "write_file": "ask"})
    context = ToolkitContext(workspace, policy, approver=approve, state_dir=tmp_path / "state")
    source = "tools.read_file(path='a.txt')\ntools.read_file(path='b.txt')\ntools.write_file(path='c', content='')"
    with create_agent_toolkit(context) as toolkit:
        content = toolkit.invoke("run_program", {"source": source}).content
    assert [request.tool_name for request in asked] == ["run_program", "write_file"]
    assert asked[0].preview.tools == ("read_file (lines 1, 2)", "write_file (line 3)")
    assert [str(error.message) for error in content.errors] == [
        "TOOL_NOT_ALLOWED: 'write_file' was not approved: not this one"
    ]
    assert not (workspace / "c").exists()


def test_progress_of_its_calls_is_reported(workspace: Path, tmp_path: Path) -> None:
    events: list[Progress] = []
    context = ToolkitContext(
        workspace,
        SecurityPolicy(default="deny", tools={"run_program": "allow", "exec_command": "allow"}),
        state_dir=tmp_path / "state",
        on_progress=events.append,
    )
    with create_agent_toolkit(context) as toolkit:
        toolkit.invoke("run_program", {"source": "tools.exec_command(command=['echo', 'hi']).stdout"})
    assert "exec_command" in {event.tool_name for event in events}


def test_a_cancelled_call_ends_the_program(workspace: Path, tmp_path: Path) -> None:
    signal = CancelSignal()
    context = ToolkitContext(
        workspace,
        SecurityPolicy(default="deny", tools={"run_program": "allow", "done": "allow"}),
        state_dir=tmp_path / "state",
        on_result=lambda message: signal.cancel("enough") if message.name == "done" else None,
    )
    with create_agent_toolkit(context) as toolkit:
        view = toolkit.with_options(signal=signal)
        source = "tools.done(message='x')\nwhile True:\n    pass"
        result = view.call(ToolCall("1", "run_program", {"source": source}))
    assert result.kind == "error"
    assert "enough" in str(result.value)


def test_an_async_toolkit_runs_it_with_its_own_handlers(workspace: Path, tmp_path: Path) -> None:
    async def main() -> object:
        context = ToolkitContext(workspace, POLICY, state_dir=tmp_path / "state")
        async with create_async_agent_toolkit(context) as toolkit:
            source = "(await atools.read_file(path='a.txt')).line_count + tools.read_file(path='b.txt').line_count"
            return (await toolkit.invoke("run_program", {"source": source})).content.value

    assert asyncio.run(main()) == 3


def test_the_audit_log_connects_the_calls_with_their_program(workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    context = ToolkitContext(workspace, POLICY, state_dir=tmp_path / "state", audit=log)
    with create_agent_toolkit(context) as toolkit:
        toolkit.invoke("run_program", {"source": "tools.read_file(path='a.txt')"})
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["event"], line.get("tool")) for line in lines] == [
        ("start", "run_program"),
        ("program", None),
        ("start", "read_file"),
        ("end", "read_file"),
        ("end", "run_program"),
    ]
    assert lines[1]["program"] == lines[2]["program"]
