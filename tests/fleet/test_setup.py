"""What is refused before anything runs, and fleets of the built-in tools."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.agents import FREE
from tests.projects import run
from toolkit import Rule, SecurityPolicy, SetupError, ToolCall, ToolkitContext, create_agent_toolkit
from toolkit.fleet import Fleet, WorkspaceSetup

RAY = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


def test_the_names_of_a_fleet_do_not_import_ray(tmp_path: Path) -> None:
    code = "import sys; from toolkit.fleet import Fleet, FleetCall, WorkspaceSetup; print('ray' in sys.modules)"
    assert run([sys.executable, "-c", code], tmp_path).stdout.strip() == "False"


def test_a_fleet_needs_a_connection_to_ray(tmp_path: Path) -> None:
    code = """
from toolkit import SetupError
from toolkit.fleet import Fleet
try:
    Fleet()
except SetupError as error:
    print(error)
"""
    assert "ray.init" in run([sys.executable, "-c", code], tmp_path).stdout


@pytest.mark.parametrize("loaded", [False, True])
def test_a_policy_can_be_sent_also_if_a_toolkit_uses_it(tmp_path: Path, loaded: bool) -> None:
    (tmp_path / "policy.toml").write_text(
        '[tools]\ndone = "allow"\n\n[[rules]]\ndecision = "deny"\npath = "secrets/**"\n'
    )
    policy: SecurityPolicy = (
        SecurityPolicy(tools={"done": "allow"}, rules=[Rule("deny", path="secrets/**")])
        if not loaded
        else SecurityPolicy.load(tmp_path / "policy.toml")
    )
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with create_agent_toolkit(ToolkitContext(workspace, policy)) as toolkit:
        sent = pickle.loads(pickle.dumps(policy))
        assert policy.explain("done", {"message": "x"}).decision == "allow"  # it stays that of its toolkit
        assert repr(sent) == repr(policy)
        with create_agent_toolkit(ToolkitContext(workspace, sent)) as other:
            assert other.invoke("done", {"message": "x"}).content.message == "x"
        assert toolkit.invoke("done", {"message": "x"}).content.message == "x"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"make_toolkit": "make_toolkit"}, "module:function"),
        ({"make_toolkit": lambda setup: None}, "module:function"),
        ({"make_driver": "module:"}, "module:function"),
        ({"workers": 0}, "workers"),
        ({"calls_per_worker": 1.5}, "calls_per_worker"),
        ({"ahead": 0}, "ahead"),
        ({"retries": -1}, "retries"),
        ({"max_result_bytes": 10}, "max_result_bytes"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(SetupError, match=problem):
        Fleet(**settings)


class TestOnRay:
    pytestmark = RAY

    @pytest.mark.whole
    @pytest.mark.parametrize("factory", ["no_such_module:make", "tests.fleet.agents:not_a_function"])
    def test_a_factory_that_cannot_be_loaded_ends_the_batch(self, ray_cluster: None, factory: str) -> None:
        with Fleet(factory, workers=1, ray_options=FREE) as fleet, pytest.raises(SetupError, match=factory):
            list(fleet.map([ToolCall("1", "done", {"message": "x"})]))

    def test_workers_that_the_cluster_has_no_room_for_end_the_batch(self, ray_cluster: None) -> None:
        with Fleet(start_seconds=0.5, ray_options={"num_cpus": 1000}) as fleet, pytest.raises(SetupError, match="CPUs"):
            list(fleet.map([ToolCall("1", "done", {"message": "x"})]))

    def test_the_built_in_tools_need_no_factory(self, ray_cluster: None, tmp_path: Path) -> None:
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        (workspace / "a.txt").write_text("hello\n")
        setup = WorkspaceSetup(workspace, SecurityPolicy(default="deny", tools={"read_file": "allow"}))
        calls = [ToolCall("1", "read_file", {"path": "a.txt"}), ToolCall("2", "bash", {"command": "ls"})]
        with Fleet(setup=setup, workers=1, ray_options=FREE) as fleet:
            read, refused = fleet.map(calls)

        assert "hello" in str(read.value)
        assert str(refused.value).startswith("TOOL_NOT_ALLOWED")

    def test_a_closed_fleet_says_so(self, ray_cluster: None) -> None:
        fleet = Fleet(workers=1, ray_options=FREE)
        fleet.close()
        fleet.close()
        with pytest.raises(SetupError, match="closed"):
            fleet.map([])
