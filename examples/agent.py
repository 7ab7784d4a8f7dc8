"""A whole agent loop, statically typed: a model asks for tools, the toolkit runs them behind policy and sandbox.

The model here is scripted, so that the example needs no network. A real one would get ``toolkit.get_allowed_tools()``
with the conversation and answer with the same ``ToolCall`` objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit import SecurityPolicy, ToolCall, ToolDefinition, Toolkit, ToolkitContext, ToolResult, create_agent_toolkit

Show = Callable[[ToolCall, ToolResult], None]


@dataclass
class ScriptedModel:
    """Stands in for an LLM: each turn it asks for some tools; the results of the turn before are what it looks at."""

    script: Iterator[list[ToolCall]]

    def reply(self, tools: list[ToolDefinition], results: list[ToolResult]) -> list[ToolCall]:
        return next(self.script)


def script() -> Iterator[list[ToolCall]]:
    """What a model might do when asked where the version of a project is set."""
    yield [ToolCall("1", "tree", {"max_depth": 2})]
    # One path does not exist, one lies outside the workspace: both come back as errors the model can act on.
    yield [
        ToolCall("2", "read_file", {"path": "src/verison.py"}),
        ToolCall("3", "read_file", {"path": "../secrets.txt"}),
    ]
    yield [ToolCall("4", "read_file", {}, raw_arguments='{"path": "src/version.py", "max_lines": 5}')]
    yield [ToolCall("5", "done", {"message": "The version is set in src/version.py: 1.4.2."})]


def run_agent(toolkit: Toolkit, model: ScriptedModel, show: Show) -> str:
    """The loop: ask the model, run what it asks for, until it says it is done."""
    tools = toolkit.get_allowed_tools()
    results: list[ToolResult] = []
    while True:
        calls = model.reply(tools, results)
        results = toolkit.call_all(calls)
        for call, result in zip(calls, results, strict=True):
            show(call, result)
            if call.name == "done" and result.kind == "text":
                return str(result.value)


def first_line_of(toolkit: Toolkit, path: str) -> str:
    """Your own code calls tools too, and a checker knows what comes back: ``content`` is a ``ReadFileOutput``."""
    message = toolkit.invoke("read_file", {"path": path, "max_lines": 1})
    return message.content.content.rstrip("\n")


def open_toolkit(workspace: Path) -> Toolkit:
    """Reading is allowed, everything else is not."""
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "tree": "allow", "done": "allow"})
    return create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy))
