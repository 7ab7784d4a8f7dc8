"""What a model asked for: the name and the arguments are known at run time only, the answer narrows by name."""

import json
from typing import assert_type, reveal_type

from toolkit.generated import AnyToolCall, AnyToolMessage, ReadFileOutput, Toolkit, ToolName, is_tool_name, parse_call
from toolkit import JsonObject, ToolCall


def gives_every_message(toolkit: Toolkit, name: str, text: str, call: ToolCall, given: dict[str, object]) -> None:
    assert_type(toolkit.invoke(name, json.loads(text)), AnyToolMessage)
    assert_type(toolkit.invoke(call.name, call.arguments), AnyToolMessage)
    assert_type(toolkit.invoke(name, JsonObject(given)), AnyToolMessage)
    assert_type(toolkit.invoke(json.loads(text), JsonObject(given)), AnyToolMessage)
    assert_type(toolkit.execute_raw(name, text), AnyToolMessage)
    assert_type(parse_call(call), AnyToolCall)


def narrows_by_name(toolkit: Toolkit, call: ToolCall) -> None:
    message = toolkit.invoke(call.name, call.arguments)
    if message.name == "read_file":
        reveal_type(message.content)  # revealed: ReadFileOutput
    elif message.name == "done":
        reveal_type(message.content)  # revealed: DoneOutput
    called = parse_call(call)
    if called.name == "read_file":
        reveal_type(called.arguments)  # revealed: ReadFileInput


def narrows_by_class(toolkit: Toolkit, call: ToolCall) -> None:
    content = toolkit.invoke(call.name, call.arguments).content
    if isinstance(content, ReadFileOutput):
        reveal_type(content)  # revealed: ReadFileOutput
    match content:
        case ReadFileOutput():
            reveal_type(content.content)  # revealed: str
        case _:
            pass


def narrows_a_name(name: str) -> None:
    if is_tool_name(name):
        assert_type(name, ToolName)


def refuses_a_plain_dict(toolkit: Toolkit, name: str, given: dict[str, object]) -> None:
    toolkit.invoke(name, given)  # error
    toolkit.invoke(name, {"path": "x"})  # error
    toolkit.invoke("read_file", given)  # error
    toolkit.invoke(name, {})  # error
    toolkit.invoke("read_file", {"paht": json.loads("1")})  # error
    toolkit.invoke(name, {"paht": json.loads("1")})  # error


def refuses_what_not_every_output_has(toolkit: Toolkit, call: ToolCall) -> None:
    message = toolkit.invoke(call.name, call.arguments)
    print(message.content.sha256)  # error
    if message.name == "read_file":
        print(message.content.root)  # error
