"""The code generated for a tool depends on that tool alone, not on which other tools exist or on their order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.corpus.project import SharedTool, shared_tools
from tests.projects import Project
from toolkit.codegen.package.inputs import read_inputs
from toolkit.codegen.package.plan import make_plan
from toolkit.codegen.package.python_names import camel
from toolkit.codegen.settings import find_settings

pytestmark = pytest.mark.xdist_group("stability")

SAMPLE_EVERY = 130
NUMBERED = {
    "name": "get_value_2",
    "inputSchema": {"type": "object", "properties": {"value": {"type": "object", "properties": {}}}},
}


def texts(project: Project, tools: list[dict[str, Any]]) -> dict[str, tuple[dict[str, Any], str]]:
    """By tool: its row in the manifest (without its place in the spec file) and the text of its module."""
    project.write("acme/tools/tools.json", json.dumps({"tools": tools}))
    place = find_settings(project.root)
    files = make_plan(place, read_inputs(place)).files
    rows = json.loads(files["manifest.json"])["tools"]
    modules = {row["name"]: f"models/{row['module'].rpartition('.')[2]}.py" for row in rows}
    return {row["name"]: ({**row, "namePointer": ""}, files[modules[row["name"]]]) for row in rows}


@pytest.fixture(scope="module")
def sample(corpus: Path) -> list[SharedTool]:
    """Tools whose class names do not collide; on a collision, one of the two gets a digest of its name."""
    by_class = {camel(tool.wire): tool for tool in shared_tools(corpus)[::SAMPLE_EVERY]}
    return list(by_class.values())


@pytest.fixture(scope="module")
def alone(sample: list[SharedTool], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is generated for the tools in their original order."""
    return texts(Project(tmp_path_factory.mktemp("first")), [tool.definition for tool in sample])


@given(data=st.data())
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_no_module_changes_when_other_tools_are_added_removed_or_moved(
    sample: list[SharedTool], alone: dict[str, Any], tmp_path: Path, data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(sample), unique_by=lambda tool: tool.key, min_size=1, max_size=12))
    others = data.draw(st.lists(st.integers(1, 99), unique=True, max_size=3))
    added = [{**NUMBERED, "name": f"another_{number}"} for number in others]
    made = texts(Project(tmp_path), [*added, *(tool.definition for tool in kept)])
    assert {tool.wire: made[tool.wire] for tool in kept} == {tool.wire: alone[tool.wire] for tool in kept}


def test_colliding_names_do_not_change_other_tools(tmp_path: Path) -> None:
    shape = {"inputSchema": NUMBERED["inputSchema"]}
    before = texts(Project(tmp_path), [{"name": name, **shape} for name in ("get_user", "list_users")])
    after = texts(
        Project(tmp_path), [{"name": name, **shape} for name in ("getUser", "get_user", "list_users", "get_User")]
    )
    assert {name: after[name] for name in before} == before
    prefixes = {name: row["prefix"] for name, (row, _) in after.items()}
    assert prefixes["get_user"] == "GetUser"
    assert len(set(prefixes.values())) == 4
