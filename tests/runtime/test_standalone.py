"""``ToolContext.standalone``: mistakes of the programmer are said plainly, and a tool has only what it declares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from toolkit import (
    CancelSignal,
    DependencyKey,
    Depends,
    FunctionTool,
    PolicyError,
    SecurityPolicy,
    SetupError,
    ToolContext,
    ToolkitContext,
    ToolRegistry,
    tool,
)

standalone: Any = ToolContext.standalone


def not_a_factory(nothing: int) -> int:
    return nothing


@tool
def misspelt(x: Ordr) -> str:  # type: ignore[name-defined]  # noqa: F821
    "Has a type that does not exist."
    return ""


@tool
def not_injectable(x: Annotated[int, Depends(not_a_factory)]) -> str:
    "Has a dependency that cannot be made."
    return ""


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda path: ToolContext.standalone(path / "none"),
            "the workspace .*none' does not exist; create it, or name another folder",
        ),
        (lambda path: standalone(5), "a workspace is given by its path, not by int"),
        (lambda path: standalone(SecurityPolicy()), "by its path, not by SecurityPolicy"),
        (lambda path: ToolContext.standalone(path, packs="acme"), "packs must be a list"),
        (lambda path: standalone(path, packs=[5]), "int is not a pack"),
        (lambda path: standalone(path, signal="stop"), "must be a CancelSignal, not str"),
    ],
)
def test_a_mistake_in_a_standalone_context_is_a_setup_error(
    tmp_path: Path, make: Callable[[Path], object], expected: str
) -> None:
    with pytest.raises(SetupError, match=expected):
        make(tmp_path)


def test_a_policy_that_names_an_unknown_tool_is_a_policy_error(tmp_path: Path) -> None:
    policy: Any = SecurityPolicy(default="deny", tools={"raeds": "allow"})  # type: ignore[dict-item]
    with pytest.raises(PolicyError, match=r"the policy names 'raeds', which is not a tool. Did you mean 'reads'\?"):
        ToolContext.standalone(ToolkitContext(tmp_path, policy), packs=[reads])


@pytest.mark.parametrize(
    ("wrong", "expected"), [(misspelt, "'Ordr' is not defined"), (not_injectable, "'nothing' of .*not_a_factory")]
)
def test_a_tool_that_is_set_up_wrongly_is_a_setup_error_too(
    tmp_path: Path, wrong: FunctionTool[..., Any], expected: str
) -> None:
    registry = ToolRegistry()
    registry.register(wrong)
    with ToolContext.standalone(tmp_path, signal=CancelSignal()) as ctx:
        with pytest.raises(SetupError, match=expected):
            wrong.execute_raw("{}", ctx)
        with pytest.raises(SetupError, match=expected):
            asyncio.run(wrong.execute_raw_async("{}", ctx))
        with pytest.raises(SetupError, match=expected):
            registry.execute(wrong.name, {}, ctx)


@tool
def reads(ctx: ToolContext) -> str:
    "Forgets to declare that it reads."
    return ctx.fs.read_text("a.txt")


def test_a_permission_that_a_tool_does_not_declare_is_named_in_the_result(tmp_path: Path) -> None:
    with ToolContext.standalone(tmp_path) as ctx:
        for result in (reads.execute_raw("{}", ctx), asyncio.run(reads.execute_raw_async("{}", ctx))):
            assert result.kind == "error"
            assert str(result.value).startswith(
                "INTERNAL: the tool is not set up correctly: 'reads' does not declare the"
            )
            assert "`@tool(permissions=['read'])`" in str(result.value)


@tool(permissions=["read"])
def writes_anyway(ctx: ToolContext, path: str) -> str:
    "Declares `read` and writes."
    ctx.fs.write_text(path, "changed")
    return ctx.fs.read_text(path)


def test_a_tool_that_declares_read_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with ToolContext.standalone(tmp_path) as ctx:
        refused = writes_anyway.execute_raw('{"path": "a.txt"}', ctx)
        allowed = writes_anyway.replace(permissions=["read", "write"]).execute_raw('{"path": "b.txt"}', ctx)
    assert str(refused.value).startswith("SANDBOX_VIOLATION: 'a.txt' may not be changed: this tool may only read files")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert allowed.value == (tmp_path / "b.txt").read_text() == "changed"


def test_a_context_without_write_is_read_only_for_functions_as_well(tmp_path: Path) -> None:
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), permissions=["read"])
    with ToolContext.standalone(context) as ctx, pytest.raises(Exception, match="may only read files"):
        writes_anyway(ctx, "a.txt")


@pytest.mark.parametrize("text", ["{", '{"a": 1} x', '{"path": "a", "path": "b"}'])
def test_text_that_is_no_json_is_told_as_that_and_not_as_a_value_of_another_type(tmp_path: Path, text: str) -> None:
    with ToolContext.standalone(tmp_path) as ctx:
        for result in (reads.execute_raw(text, ctx), asyncio.run(reads.execute_raw_async(text, ctx))):
            assert result.kind == "error"
            assert str(result.value).startswith("INVALID_TOOL_ARGUMENTS: the arguments are not valid JSON: ")


def test_closing_it_ends_what_an_async_factory_made(tmp_path: Path) -> None:
    ended = []

    async def make() -> AsyncIterator[str]:
        yield "made"
        ended.append("ended")

    key: DependencyKey[str] = DependencyKey("made", make, lifetime="call")
    context = ToolContext.standalone(tmp_path)
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(context.resolve_async(key)) == "made"
        context.close()
        assert ended == ["ended"]
    finally:
        loop.close()
