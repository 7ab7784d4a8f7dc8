"""A complete, statically typed agent: a model calls tools, and the toolkit runs them under a policy, in a sandbox.

The model here is scripted, so the example needs no network; ``one_loop.py`` has the drivers of real ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from toolkit import SecurityPolicy, ToolCall, Toolkit, ToolkitContext, ToolResult, create_agent_toolkit, run
from toolkit.testing import ScriptedModel, call

Show = Callable[[ToolCall, ToolResult], None]

RUN_TESTS = [sys.executable, "-m", "unittest", "--quiet"]


def scripted_model() -> ScriptedModel:
    """Stands in for the driver of an LLM: what a model might do when asked why the total of an order is wrong."""
    return ScriptedModel(
        [call("todowrite", todos=_plan("in_progress", "pending", "pending"))],
        [call("tree", max_depth=2), call("grep", pattern=r"def \w*total", include="*.py")],
        # Read-only calls next to each other run in parallel. One path is misspelt and one is outside the workspace.
        [
            call("read_file", path="shop/order.py"),
            call("read_file", path="shop/ordr.py"),
            call("read_file", path="../secrets.txt"),
        ],
        [call("exec_command", command=RUN_TESTS)],
        [call("todowrite", todos=_plan("completed", "in_progress", "pending"))],
        [
            call("edit", path="shop/order.py", old_string="return price", new_string="return price * quantity"),
            call("glob", pattern="**/test_*.py"),
        ],
        [call("exec_command", command=RUN_TESTS)],
        [
            call("write_file", path="CHANGES.md", content="- An order's total counts every piece of an item.\n"),
            call("git_status_summary"),
            call("todowrite", todos=_plan("completed", "completed", "completed")),
        ],
        [call("done", message="The total ignored the quantity; shop/order.py is fixed, and the tests pass.")],
    )


def _plan(find: str, fix: str, check: str) -> list[dict[str, str]]:
    steps = ("Find the bug", find), ("Fix it", fix), ("Run the tests", check)
    return [{"content": content, "status": status} for content, status in steps]


def run_agent(tk: Toolkit, model: ScriptedModel, show: Show) -> str:
    """Asks the model and runs the tools it calls, until it is done."""
    return run(model, tk, "The total of an order is wrong. Find out why, and fix it.", after_call=show).answer


def changed_files(tk: Toolkit) -> list[str]:
    """Your own code can call tools too, with checked types: ``content`` is a ``GitStatusSummaryOutput``."""
    status = tk.invoke("git_status_summary", {}).content
    return [entry.path for entry in (*status.unstaged, *status.untracked)]


def open_toolkit(workspace: Path, audit: Path) -> Toolkit:
    """A toolkit with only what an agent needs to fix a small project; every call is recorded."""
    policy = SecurityPolicy(
        default="deny",
        tools={
            "todowrite": "allow", "tree": "allow", "grep": "allow", "glob": "allow", "read_file": "allow", "edit": "allow",
            "write_file": "allow", "exec_command": "allow", "git_status_summary": "allow", "done": "allow",
        },
    )  # fmt: skip
    # The folders of this interpreter, so that a sandboxed command can run it.
    interpreter = {Path(sys.prefix), Path(sys.base_prefix)}
    return create_agent_toolkit(
        ToolkitContext(workspace, policy, read_roots=sorted(interpreter), audit=audit, state_dir=audit.parent / "state")
    )
