"""A profile has some of the tools: calling another one is a type error."""

from typing import assert_type, reveal_type

from acme.generated import (
    AcmeToolkit,
    BashInput,
    ReviewerContext,
    ReviewerPolicy,
    ReviewerRule,
    ReviewerToolkit,
    ReviewerToolMessage,
    ToolkitContext,
    SecurityPolicy,
    WriterToolkit,
    create_async_reviewer_toolkit,
    create_reviewer_toolkit,
)
from toolkit import ToolCall, ToolDefinition


def has_its_tools(call: ToolCall) -> None:
    context = ReviewerContext(".", ReviewerPolicy(default="allow", rules=[ReviewerRule("deny", tools=["grep"], path="x")]))
    toolkit = create_reviewer_toolkit(context)
    reveal_type(toolkit)  # revealed: ReviewerToolkit
    reveal_type(toolkit.invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.tools.count_words(text="x"))  # revealed: CountWordsOutput
    assert_type(toolkit.get_allowed_tools(), list[ToolDefinition])
    reveal_type(toolkit.tool_names[2])  # revealed: Literal['read_file']
    message = toolkit.invoke(call.name, call.arguments)
    assert_type(message, ReviewerToolMessage)
    if message.name == "grep":
        reveal_type(message.content)  # revealed: GrepOutput


async def has_an_async_twin(context: ReviewerContext) -> None:
    toolkit = create_async_reviewer_toolkit(context)
    reveal_type(toolkit)  # revealed: AsyncReviewerToolkit
    reveal_type((await toolkit.invoke("read_file", {"path": "x"})).content)  # revealed: ReadFileOutput
    await toolkit.invoke("bash", {"command": "ls"})  # error
    await toolkit.tools.bash(command="ls")  # error


def refuses_other_tools(toolkit: ReviewerToolkit, writer: WriterToolkit) -> None:
    toolkit.invoke("bash", {"command": "ls"})  # error
    toolkit.invoke("bash", BashInput(command="ls"))  # error
    toolkit.tools.bash(command="ls")  # error
    toolkit.invoke("write_file", {"path": "x", "content": "y"})  # error
    toolkit.tool_names[3]  # error
    ReviewerPolicy(tools={"bash": "allow"})  # error
    ReviewerRule("allow", tools=["bash"])  # error
    writer.invoke("write_file", {"path": "x", "content": "y"})
    writer.tools.edit(path="x", old_string="a", new_string="b")
    writer.invoke("bash", {"command": "ls"})  # error
    writer.tools.grep(pattern="x")  # error


def keeps_toolkits_apart(toolkit: AcmeToolkit, reviewer: ReviewerToolkit) -> None:
    create_reviewer_toolkit(ToolkitContext(".", SecurityPolicy(tools={"bash": "allow"})))  # error
    ToolkitContext(".", SecurityPolicy(), approver=lambda request: "yes")  # error
    ToolkitContext(".", SecurityPolicy(), concurrency=None)  # error
    narrow: ReviewerToolkit = toolkit  # error
    wide: AcmeToolkit = reviewer  # error
