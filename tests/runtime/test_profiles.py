"""A profile at run time: what it does not have is refused by name, whatever the context's own policy says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import acme.generated
from acme.generated import (
    AsyncReviewerToolkit,
    ReviewerContext,
    ReviewerPolicy,
    ReviewerToolkit,
    WriterContext,
    WriterPolicy,
    WriterRule,
    create_async_reviewer_toolkit,
    create_reviewer_toolkit,
    create_writer_toolkit,
)
from toolkit import Approve, DynamicContext, DynamicPolicy, JsonObject, ToolCall, ToolkitError, tool


@tool(name="shout_twice")
def added(text: str) -> str:
    """A code-first tool that no profile has."""
    return text.upper()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "secrets").mkdir(parents=True)
    (folder / "docs").mkdir()
    for name in ("a.txt", "secrets/key", "docs/page.md"):
        (folder / name).write_text("some text\n")
    return folder


def reviewer(workspace: Path, policy: ReviewerPolicy | None = None) -> ReviewerToolkit:
    return create_reviewer_toolkit(ReviewerContext(workspace, policy or ReviewerPolicy(default="allow")))


def code_of(error: pytest.ExceptionInfo[ToolkitError]) -> str:
    return error.value.code


def test_it_has_its_tools(workspace: Path) -> None:
    toolkit = reviewer(workspace)
    assert toolkit.tool_names == ("count-words", "grep", "read_file")
    assert [definition.name for definition in toolkit.get_allowed_tools()] == list(toolkit.tool_names)
    assert toolkit.tools.read_file(path="a.txt").content == "some text\n"
    assert toolkit.invoke("read_file", {"path": "a.txt"}).content.content == "some text\n"


@pytest.mark.parametrize("name", ["bash", "write_file", "add"])
def test_other_tools_are_refused_by_name_before_their_arguments_are_read(workspace: Path, name: str) -> None:
    toolkit = reviewer(workspace)
    with pytest.raises(ToolkitError) as refused:
        toolkit.invoke(name, JsonObject({"nonsense": 1}))
    assert code_of(refused) == "TOOL_NOT_ALLOWED"
    assert "the profile 'reviewer' does not have this tool" in str(refused.value)
    with pytest.raises(ToolkitError, match="does not have this tool"):
        toolkit.execute_raw(name, "{}")
    assert str(toolkit.call(ToolCall("1", name, JsonObject({}))).value).startswith("TOOL_NOT_ALLOWED")


def test_a_policy_of_any_names_does_not_widen_it(workspace: Path) -> None:
    context = DynamicContext(workspace, DynamicPolicy(default="allow", tools={"bash": "allow", "shout_twice": "allow"}))
    toolkit = create_reviewer_toolkit(context, packs=["toolkit.builtin:BUILTIN", "acme.tools:ACME", added])
    assert [definition.name for definition in toolkit.get_allowed_tools()] == ["count-words", "grep", "read_file"]
    for name, given in (("bash", {"command": "ls"}), ("shout_twice", {"text": "x"})):
        with pytest.raises(ToolkitError) as refused:
            toolkit.invoke(name, JsonObject(dict(given)))
        assert code_of(refused) == "TOOL_NOT_ALLOWED"
    # Neither does making the class itself, or a view of it.
    everything = DynamicContext(workspace, DynamicPolicy(default="allow"))
    made = ReviewerToolkit(acme.generated.CATALOG, everything, ["toolkit.builtin:BUILTIN"]).with_options(deadline=60)
    with pytest.raises(ToolkitError) as refused:
        made.invoke("bash", JsonObject({"command": "ls"}))
    assert code_of(refused) == "TOOL_NOT_ALLOWED"


def test_the_policy_of_the_context_narrows_it(workspace: Path) -> None:
    toolkit = reviewer(workspace, ReviewerPolicy(default="deny", tools={"grep": "allow"}))
    assert [definition.name for definition in toolkit.get_allowed_tools()] == ["grep"]
    with pytest.raises(ToolkitError) as refused:
        toolkit.tools.read_file(path="a.txt")
    assert code_of(refused) == "TOOL_NOT_ALLOWED"


def test_the_async_twin_has_the_same_limits(workspace: Path) -> None:
    async def use() -> None:
        toolkit = create_async_reviewer_toolkit(ReviewerContext(workspace, ReviewerPolicy(default="allow")))
        assert isinstance(toolkit, AsyncReviewerToolkit)
        assert (await toolkit.tools.read_file(path="a.txt")).content == "some text\n"
        with pytest.raises(ToolkitError) as refused:
            await toolkit.invoke("bash", JsonObject({"command": "ls"}))
        assert code_of(refused) == "TOOL_NOT_ALLOWED"

    asyncio.run(use())


def test_rules_of_its_policy_file_hold_for_every_context(workspace: Path) -> None:
    toolkit = create_writer_toolkit(WriterContext(workspace, WriterPolicy(default="allow")))
    assert toolkit.tool_names == ("edit", "read_file", "write_file")
    assert toolkit.tools.read_file(path="a.txt").content == "some text\n"
    for refused_call in (
        lambda: toolkit.tools.read_file(path="secrets/key"),
        lambda: toolkit.tools.edit(path="a.txt", old_string="some", new_string="other"),
        lambda: toolkit.tools.write_file(path="b.txt", content="x"),  # asks, and there is no approver
    ):
        with pytest.raises(ToolkitError) as refused:
            refused_call()
        assert code_of(refused) == "TOOL_NOT_ALLOWED"
    assert toolkit.tools.edit(path="docs/page.md", old_string="some", new_string="other").replacements == 1


def test_what_its_policy_asks_is_asked_even_if_the_context_allows(workspace: Path) -> None:
    asked: list[str] = []

    def approve(request: object) -> Approve:
        asked.append(type(request).__name__)
        return Approve()

    toolkit = create_writer_toolkit(
        WriterContext(workspace, WriterPolicy(default="allow", tools={"write_file": "allow"}), approver=approve)
    )
    toolkit.tools.write_file(path="b.txt", content="x")
    assert asked == ["ApprovalRequest"]
    assert (workspace / "b.txt").read_text() == "x"


def test_paths_must_be_allowed_by_both(workspace: Path) -> None:
    own = WriterPolicy(default="deny", rules=[WriterRule("allow", tools=["edit", "read_file"], path="a.txt")])
    toolkit = create_writer_toolkit(WriterContext(workspace, own))
    assert toolkit.tools.read_file(path="a.txt").content == "some text\n"
    for path in ("docs/page.md", "a.txt"):  # the context refuses the one, the profile the other
        with pytest.raises(ToolkitError) as refused:
            toolkit.tools.edit(path=path, old_string="some", new_string="other")
        assert code_of(refused) == "TOOL_NOT_ALLOWED"
