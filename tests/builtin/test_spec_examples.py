"""Runs the examples in the specs of the built-in tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.commands import needs_a_sandbox
from tests.guard.netns import PUBLIC, Job, Lab
from tests.projects import REPOSITORY
from toolkit import SecurityPolicy, ToolkitContext, ToolName, create_agent_toolkit
from toolkit.schema.spec import SpecExample, ToolSpec
from toolkit.schema.spec_files import load_specs
from toolkit.testing.pack_laws import check_example

SPECS = load_specs([REPOSITORY / "toolkit" / "builtin"], base=REPOSITORY)
# By whether they need a network.
EXAMPLES = {
    online: [
        pytest.param(spec, example, id=f"{spec.name}-{example.title}")
        for spec in SPECS
        for example in spec.examples
        if ("network" in spec.required) == online
    ]
    for online in (False, True)
}


MUST_BE_NAMED: list[ToolName] = ["describe_tools", "run_program", "search_tools"]

ELSEWHERE = {"example.org": [[PUBLIC]]}


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    lab = Lab(None)
    try:
        if lab.skip:
            pytest.skip(lab.skip)
        yield lab
    finally:
        lab.close()


@pytest.mark.sample
@pytest.mark.parametrize(("spec", "example"), EXAMPLES[False])
@pytest.mark.slow
def test_example(spec: ToolSpec, example: SpecExample, tmp_path: Path) -> None:
    if "execute" in spec.required:
        needs_a_sandbox()
    policy = SecurityPolicy(default="allow", tools=dict.fromkeys(MUST_BE_NAMED, "allow"))
    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        check_example(toolkit, tmp_path, spec, example)


NEED_MORE_THAN_FILES = {
    "task": "an application that runs subagents: tests/builtin/test_task_tool.py",
    "tool_output_cache": "an output that was kept: tests/builtin/test_output_cache_tools.py",
    "tool_output_cache_grep": "an output that was kept: tests/builtin/test_output_cache_tools.py",
}
"""Tools whose success a spec cannot show, and where it is shown instead."""


@pytest.mark.parametrize(("spec", "example"), EXAMPLES[True])
@pytest.mark.slow
def test_example_in_a_network_of_its_own(spec: ToolSpec, example: SpecExample, lab: Lab) -> None:
    """With a server in the place of example.org, and no packet that leaves this machine."""
    assert not example.files, "the workspace is in there, too; nobody has needed files in it yet"
    outcome = lab.run(Job(tool=spec.name, arguments=json.dumps(example.arguments), names=ELSEWHERE))
    if outcome.code:
        assert example.error in (outcome.code, outcome.reason), outcome
        return
    assert example.error is None, outcome
    assert {key: outcome.content[key] for key in example.output or {}} == example.output
    assert outcome.text


def test_every_built_in_shows_examples_of_success() -> None:
    silent = {spec.name for spec in SPECS if all(example.error is not None for example in spec.examples)}
    assert silent == set(NEED_MORE_THAN_FILES)
