"""A tool that the package has and the profile has not: the message does not say that it does not exist."""

from typing import reveal_type

from acme.generated import AsyncReviewerToolkit, BashInput, ReviewerPolicy, ReviewerRule, ReviewerToolkit
from toolkit import JsonObject


def mistakes(toolkit: ReviewerToolkit) -> None:
    reveal_type(toolkit.invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    toolkit.invoke("bash", {"command": "ls"})  # error: The profile of this toolkit has no tool "bash"
    toolkit.invoke("bash", BashInput(command="ls"))  # error: The profile of this toolkit has no tool "bash"
    toolkit.invoke("bash", {"command": "ls"}).content.nothing  # error: The profile of this toolkit has no tool "bash"
    toolkit.invoke("raed_file", {"path": "x"})  # error: No tool is called "raed_file"; did you mean "read_file"?
    toolkit.invoke("read_file", {"paht": "x"})  # error: "read_file" has no argument "paht"; did you mean "path"?
    toolkit.invoke("nothing", {})  # error: No tool is called "nothing"; if it joins at run time, pass JsonObject(...)
    toolkit.invoke("nothing", JsonObject({}))
    toolkit.tools.bash(command="ls")  # error: "ReviewerTools" has no attribute "bash"
    ReviewerPolicy(tools={"bash": "allow"})  # error: No tool is called "bash"
    ReviewerRule("allow", tools=["bash"])  # error: No tool is called "bash"


async def awaited(toolkit: AsyncReviewerToolkit) -> None:
    await toolkit.invoke("bash", {"command": "ls"})  # error: The profile of this toolkit has no tool "bash"
    reveal_type((await toolkit.invoke("read_file", {"path": "x"})).content)  # revealed: ReadFileOutput
