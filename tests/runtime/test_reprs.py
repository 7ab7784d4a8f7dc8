"""What people see in a debugger or a log: short texts without addresses and without secrets."""

from __future__ import annotations

import pydoc
import re
from pathlib import Path
from typing import Any, get_args

import pytest

import toolkit
from toolkit import (
    CancelSignal,
    Conversation,
    DependencyKey,
    Depends,
    Pack,
    Rule,
    SandboxFS,
    SecurityPolicy,
    TextMessage,
    ToolContext,
    ToolFailed,
    ToolkitContext,
    ToolName,
    ToolRegistry,
    create_agent_toolkit,
    create_async_agent_toolkit,
    tool,
)


@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b


def test_a_policy_can_be_copied_from_its_repr() -> None:
    policy = SecurityPolicy(
        default="deny", tools={"done": "allow", "grep": "ask"}, rules=[Rule("deny", tools=["read_file"], path="*.env")]
    )
    copied = eval(repr(policy), {"SecurityPolicy": SecurityPolicy, "Rule": Rule})
    assert (copied.default, copied.tools, repr(copied)) == (policy.default, policy.tools, repr(policy))
    assert repr(SecurityPolicy()) == "SecurityPolicy(default='deny')"
    names = get_args(ToolName)
    many: Any = SecurityPolicy(default="deny", tools=dict.fromkeys(names, "allow"))
    assert repr(many) == f"SecurityPolicy(default='deny', tools=<{len(names)} decisions>)"


def test_a_toolkit_says_how_many_tools_are_allowed_and_where(tmp_path: Path) -> None:
    policy = SecurityPolicy(default="deny", tools={"done": "allow", "grep": "ask", "write_file": "allow"})
    context = ToolkitContext(tmp_path, policy, mode="read-only", permissions=["read"], session_id="secret")
    count = len(get_args(ToolName))

    toolkit = create_agent_toolkit(context)
    assert repr(toolkit) == f"<Toolkit: 1 of {count} tools allowed, workspace {str(tmp_path)!r}>"
    assert repr(create_async_agent_toolkit(context)).startswith(f"<AsyncToolkit: 1 of {count} tools allowed")
    assert repr(toolkit.tools).startswith(f"<Tools: {count} tools as methods: apply_patch, bash, describe_tools, ")
    assert repr(context) == (f"<ToolkitContext: workspace {str(tmp_path)!r}, read-only, permissions read, {policy!r}>")
    toolkit.close()
    assert repr(toolkit).endswith(", closed>")


def test_the_count_is_that_of_the_tools_a_model_is_offered(tmp_path: Path) -> None:
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), permissions=["read", "network"])
    with create_agent_toolkit(context) as toolkit:
        assert repr(toolkit).startswith(f"<Toolkit: {len(toolkit.get_allowed_tools())} of ")


def test_the_rest(tmp_path: Path) -> None:
    registry, signal = ToolRegistry(), CancelSignal()
    assert repr(registry) == "<ToolRegistry: no tools>"
    registry.register(add)
    assert repr(signal) == "<CancelSignal: not cancelled>"
    signal.cancel("enough")
    with ToolContext.standalone(tmp_path, call_id="1") as ctx, SandboxFS(tmp_path) as fs:
        shown = {
            repr(registry): "<ToolRegistry: add>",
            repr(signal): "<CancelSignal: cancelled: enough>",
            repr(add.as_pack()): "<Pack: add>",
            repr(Pack()): "<Pack: no tools>",
            repr(ctx): "<StandaloneContext of 'standalone': permissions execute, network, read, write, call '1'>",
            repr(ctx.signal): "<CallSignal: running>",
            repr(fs): f"<SandboxFS {str(tmp_path)!r}>",
            repr(fs.for_reading()): f"<SandboxFS {str(tmp_path)!r}: for reading>",
            repr(Depends(open)): "Depends(open)",
            repr(Depends(DependencyKey("db", dict), lifetime="run")): "Depends(DependencyKey('db'), lifetime='run')",
            repr(Conversation([TextMessage("user", "secret")])): "<Conversation: 1 message, 0 turns>",
            repr(ToolFailed("NOT_FOUND", "no file 'a'", path="a")): "ToolFailed('NOT_FOUND', \"no file 'a'\")",
        }
        assert list(shown) == list(shown.values())
        for guard in (ctx.net, ctx.process, ctx.git):
            assert " at 0x" not in repr(guard) and len(repr(guard)) < 200
    assert repr(fs).endswith(": closed>")


@pytest.mark.parametrize(
    ("name", "lines"), [("create_agent_toolkit", 20), ("Toolkit", 120), ("AsyncToolkit", 120), ("tool", 40)]
)
def test_help_fits_on_a_few_screens(name: str, lines: int) -> None:
    text = pydoc.render_doc(getattr(toolkit, name), renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    # From 3.13 on, pydoc writes each parameter of a long signature on a line of its own.
    on_one_line = re.sub(r"\(\n(?: \|? +.*\n)+? \|?  \)", "(...)", text)
    assert len(on_one_line.splitlines()) <= lines


def test_help_of_a_method_describes_every_argument(tmp_path: Path) -> None:
    with create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow"))) as toolkit:
        text = pydoc.render_doc(toolkit.tools.read_file, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert "start_line: 'int' = 1" in text and ":param max_lines: " in text and "OMIT" not in text
