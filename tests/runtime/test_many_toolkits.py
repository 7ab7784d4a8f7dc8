"""A process that makes a toolkit for each of many workspaces: the hundredth takes the steps of the first."""

from __future__ import annotations

import json
from pathlib import Path

from tests.projects import Project, tool

# Calls of functions are counted, not time: a loop over all earlier workspaces would show as more calls.
MAKE_MANY = """
import json, os, sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit

def make(number):
    os.mkdir(f"workspace-{number}")
    context = ToolkitContext(f"workspace-{number}", SecurityPolicy(default="allow"))
    create_agent_toolkit(context).close()

def count_calls(number):
    calls = 0
    def count(frame, event, argument):
        nonlocal calls
        calls += 1
    sys.setprofile(count)
    make(number)
    sys.setprofile(None)
    return calls

sys.path.append(os.path.abspath("workspace-0"))
for number in range(10):
    make(number)
few = count_calls(10)
for number in range(11, 200):
    make(number)
print(json.dumps([few, count_calls(200)]))
"""


def test_a_toolkit_costs_the_same_however_many_there_were_before(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    few, many = json.loads(project.python(MAKE_MANY).stdout)
    assert many < 1.05 * few
