from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.snapshots import Snapshots
from toolkit import SUBAGENT_RUNNER, Permission, Progress, SubagentRequest, SubagentResult, ToolFailed, ToolNotAllowed
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit


class Recorder:
    """Runs nothing, and says what it was asked."""

    def __init__(self, status: str = "completed") -> None:
        self.requests: list[SubagentRequest] = []
        self.status = status

    def run(self, request: SubagentRequest) -> SubagentResult:
        self.requests.append(request)
        return SubagentResult(self.status, f"did: {request.prompt}", request.session_id or "new-1")  # type: ignore[arg-type]


class LateRecorder(Recorder):
    async def run(self, request: SubagentRequest) -> SubagentResult:  # type: ignore[override]
        return Recorder.run(self, request)


def toolkit_with(root: Path, runner: Recorder, **context: Any) -> Toolkit:
    made = ToolkitContext(
        root,
        SecurityPolicy(default="allow"),
        overrides={SUBAGENT_RUNNER.id: lambda: runner},
        **context,
    )
    return create_agent_toolkit(made)


@pytest.mark.parametrize("make", [Recorder, LateRecorder])
def test_runs_what_the_application_put_in_place(tmp_path: Path, make: Callable[[], Recorder]) -> None:
    runner = make()
    with toolkit_with(tmp_path, runner) as toolkit:
        output = toolkit.tools.task(description="count", prompt="How many?", subagent_type="counter")
        again = toolkit.tools.task(description="count", prompt="And now?", session_id=output.session_id)

    assert (output.status, output.output, output.session_id) == ("completed", "did: How many?", "new-1")
    assert again.session_id == "new-1"
    assert [(one.description, one.subagent_type, one.session_id) for one in runner.requests] == [
        ("count", "counter", None),
        ("count", None, "new-1"),
    ]


async def _awaited(root: Path, runner: Recorder) -> str:
    context = ToolkitContext(root, SecurityPolicy(default="allow"), overrides={SUBAGENT_RUNNER.id: lambda: runner})
    async with create_async_agent_toolkit(context) as toolkit:
        return (await toolkit.tools.task(description="count", prompt="How many?")).output


@pytest.mark.parametrize("make", [Recorder, LateRecorder])
def test_runs_under_the_async_toolkit(tmp_path: Path, make: Callable[[], Recorder]) -> None:
    import asyncio

    assert asyncio.run(_awaited(tmp_path, make())) == "did: How many?"


def test_says_that_nobody_can_run_it(toolkit: Toolkit) -> None:
    with pytest.raises(ToolFailed, match="do the work directly") as caught:
        toolkit.tools.task(description="count", prompt="How many?")
    assert caught.value.reason == "LLM_ASSIST_REQUIRED"


@pytest.mark.parametrize(
    ("parent", "wanted", "granted"),
    [
        (["execute", "read"], ["read", "write", "network"], {"read"}),
        (["execute"], ["read", "write"], set()),
        (["execute", "read", "write", "network"], ["read", "write"], {"read", "write"}),
    ],
)
def test_a_subagent_gets_the_intersection_of_permissions(
    tmp_path: Path, parent: list[Permission], wanted: list[Permission], granted: set[Permission]
) -> None:
    runner = Recorder()
    (tmp_path / "secret.txt").write_text("s")
    with toolkit_with(tmp_path, runner, permissions=parent) as toolkit:
        toolkit.tools.task(description="d", prompt="p", subagent_type="digger")
    child = runner.requests[0].child_context("child", permissions=wanted)

    assert (set(child.permissions), child.session_id, child.agent) == (granted, "child", "digger")
    with create_agent_toolkit(child) as below:
        offered = {definition.name for definition in below.get_allowed_tools()}
        assert ("read_file" in offered) == ("read" in granted)
        if "read" not in granted:
            with pytest.raises(ToolNotAllowed):
                below.tools.read_file(path="secret.txt")


def test_tells_who_watches_what_it_is_about(tmp_path: Path) -> None:
    heard: list[Progress] = []
    with toolkit_with(tmp_path, Recorder(), on_progress=heard.append) as toolkit:
        toolkit.tools.task(description="count files", prompt="p")
    assert [event.title for event in heard] == ["count files"]


def test_what_a_model_reads(tmp_path: Path, snapshots: Snapshots) -> None:
    with toolkit_with(tmp_path, Recorder()) as toolkit:
        message = toolkit.invoke("task", {"description": "d", "prompt": "p"})
        snapshots.check("task/completed", message.text(), budget=80)
    with toolkit_with(tmp_path, Recorder("failed")) as toolkit:
        message = toolkit.invoke("task", {"description": "d", "prompt": "p"})
        snapshots.check("task/failed", message.text(), budget=120)
