"""The async toolkit: the same surface, awaited."""

from typing import assert_type, reveal_type

from toolkit.generated import AnyToolMessage, AsyncToolkit
from toolkit import ToolCall, ToolResult


async def gives_the_output(toolkit: AsyncToolkit, call: ToolCall) -> None:
    reveal_type(await toolkit.tools.read_file(path="x"))  # revealed: ReadFileOutput
    reveal_type((await toolkit.invoke("read_file", {"path": "x"})).content)  # revealed: ReadFileOutput
    assert_type(await toolkit.invoke(call.name, call.arguments), AnyToolMessage)
    assert_type(await toolkit.call(call), ToolResult)
    assert_type(await toolkit.call_all([call]), list[ToolResult])
    assert_type(await toolkit.execute_raw("done", "{}"), AnyToolMessage)


async def refuses_wrong_calls(toolkit: AsyncToolkit) -> None:
    await toolkit.invoke("read_flie", {"path": "x"})  # error
    await toolkit.invoke("read_file", {"paht": "x"})  # error
    await toolkit.tools.read_file(paht="x")  # error
    print(toolkit.invoke("read_file", {"path": "x"}).content)  # error
