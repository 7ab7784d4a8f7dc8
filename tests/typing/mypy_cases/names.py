"""All the ways to name a tool, and to give its arguments."""

import json
from typing import Any, Final, Literal, assert_type, reveal_type

from acme.generated import AcmeToolkit
from toolkit.generated import (
    AnyToolMessage,
    AsyncToolkit,
    ReadFileArgs,
    ReadFileInput,
    Toolkit,
    ToolName,
    TreeInput,
    is_tool_name,
)
from toolkit import JsonObject, ToolCall

READ: Final = "read_file"
WRONG: Final = "read_flie"
EITHER = Literal["read_file", "tree"]


def literal_names(toolkit: Toolkit, literal: Literal["read_file"], either: EITHER, more: Literal["read_file", "list"]) -> None:
    reveal_type(toolkit.invoke(READ, {"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke(literal, {"path": "x"}).content)  # revealed: ReadFileOutput
    # Without the plugin, mypy matches a dict with one overload only, so it refuses this.
    reveal_type(toolkit.invoke(either, {"path": "x"}).content)  # only with the plugin, revealed: ReadFileOutput | TreeOutput
    toolkit.invoke(WRONG, {"path": "x"})  # error: No tool is called "read_flie"; did you mean "read_file"?
    toolkit.invoke(either, {"paht": "x"})  # errors
    toolkit.invoke(more, {})  # error: "read_file" needs the argument "path"
    toolkit.invoke(either, TreeInput())  # error: "read_file" takes a dict or ReadFileInput, not TreeInput


def narrowed_names(toolkit: Toolkit, name: ToolName, text: str) -> None:
    assert_type(toolkit.invoke(name, JsonObject({})), AnyToolMessage)
    if name == "read_file":
        reveal_type(toolkit.invoke(name, {"path": "x"}).content)  # revealed: ReadFileOutput
    if is_tool_name(text):
        assert_type(toolkit.invoke(text, JsonObject({})), AnyToolMessage)


def dynamic_names(toolkit: Toolkit, name: str, call: ToolCall, anything: Any) -> None:
    assert_type(toolkit.invoke(name, json.loads("{}")), AnyToolMessage)
    assert_type(toolkit.invoke(call.name, call.arguments), AnyToolMessage)
    assert_type(toolkit.invoke("joined_at_run_time", call.arguments), AnyToolMessage)
    assert_type(toolkit.invoke("joined_at_run_time", json.loads("{}")), AnyToolMessage)
    assert_type(toolkit.execute_raw(name, "{}"), AnyToolMessage)
    toolkit.invoke(anything, {"path": "x"})


def names_of_type_any(toolkit: Toolkit, name: Any, anything: Any, given: dict[str, Any], some: ReadFileInput | JsonObject) -> None:
    assert_type(toolkit.invoke(name, JsonObject(given)), AnyToolMessage)
    reveal_type(toolkit.invoke(name, anything))  # revealed: Any
    reveal_type(toolkit.invoke(name, ReadFileInput(path="x")).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke(name, {"path": "x"}))  # revealed: ToolMessage[Any, Any]
    reveal_type(toolkit.invoke(name, {"path": anything}))  # revealed: ToolMessage[Any, Any]
    assert_type(toolkit.invoke(name, some), AnyToolMessage)
    toolkit.invoke(name, {"paht": "x"})  # error: The name of the tool is known only at run time, so its arguments must be a JsonObject, not dict[str, str]: write JsonObject({...})
    toolkit.invoke(name, given)  # error: The name of the tool is known only at run time, so its arguments must be a JsonObject, not dict[str, Any]: write JsonObject(...)
    toolkit.invoke(name, 7)  # error: The name of the tool is known only at run time, so its arguments must be a JsonObject, not int: write JsonObject(...)


async def awaited_names_of_type_any(toolkit: AsyncToolkit, name: Any) -> None:
    assert_type(await toolkit.invoke(name, JsonObject({})), AnyToolMessage)
    reveal_type((await toolkit.invoke(name, ReadFileInput(path="x"))).content)  # revealed: ReadFileOutput
    reveal_type(await toolkit.invoke(name, {"path": "x"}))  # revealed: Any


def all_kinds_of_arguments(toolkit: Toolkit, flag: bool, model: ReadFileInput, some: ReadFileInput | JsonObject) -> None:
    args: ReadFileArgs = {"path": "x"}
    reveal_type(toolkit.invoke("read_file", args).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke("read_file", model).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke("read_file", model if flag else {"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke(name="read_file", args={"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke(args={"path": "x"}, name="read_file").content)  # revealed: ReadFileOutput
    toolkit.invoke("read_file", some)
    toolkit.invoke("read_file", args=args)
    reveal_type(toolkit.invoke("read_file", **{"args": args}).content)  # revealed: ReadFileOutput
    toolkit.invoke("read_file", **{"args": TreeInput()})  # error
    toolkit.invoke(nmae="read_file", args=args)  # error: invoke takes the name of a tool and its arguments: write invoke(name, args)
    pair: tuple[str, JsonObject] = "read_file", JsonObject({})
    assert_type(toolkit.invoke(*pair), AnyToolMessage)


def names_that_are_no_identifiers(toolkit: AcmeToolkit) -> None:
    reveal_type(toolkit.invoke("count-words", {"text": "x"}).content)  # revealed: CountWordsOutput
    reveal_type(toolkit.invoke("library_lend-book", {"id": 1, "reader": {"name": "x"}}).name)  # revealed: Literal['library_lend-book']


class Mine(AcmeToolkit):
    def read(self, path: str) -> str:
        reveal_type(super().invoke("read_file", {"path": path}).content)  # revealed: ReadFileOutput
        self.invoke("read_file", {"paht": path})  # error: "read_file" has no argument "paht"; did you mean "path"?
        return self.invoke("read_file", {"path": path}).content.content


class Replaced(AcmeToolkit):
    def invoke(self, name: Any, args: Any) -> Any:
        return super().invoke(name, args)


class ReplacedForText(AcmeToolkit):
    # Without the plugin, mypy wants a parameter that also takes what the first overload names, which no value is.
    def invoke(self, name: str, args: Any) -> Any:  # only with the plugin
        return super().invoke(name, args)


def several_toolkits(mine: Mine, acme: AcmeToolkit, toolkit: Toolkit, either: AcmeToolkit | Toolkit) -> None:
    reveal_type(mine.invoke("add", {"a": 1, "b": 2}).content)  # revealed: AddOutput
    reveal_type(acme.invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(either.invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    toolkit.invoke("add", {"a": 1, "b": 2})  # error: No tool is called "add"; if it joins at run time, pass JsonObject(...)
    either.invoke("add", {"a": 1, "b": 2})  # error: No tool is called "add"; if it joins at run time, pass JsonObject(...)


def as_a_value(toolkit: Toolkit) -> None:
    invoke = toolkit.invoke
    reveal_type(invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    invoke("read_file", {"paht": "x"})  # error: "read_file" has no argument "paht"; did you mean "path"?
