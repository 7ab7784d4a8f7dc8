"""Every usual mistake, and the one line that mypy prints for it with the plugin."""

from acme.generated import AcmeToolkit, AsyncAcmeToolkit
from acme.generated import SecurityPolicy as AcmePolicy
from toolkit import JsonObject, ToolCall, create_agent_toolkit
from toolkit.generated import ReadFileArgs, ReadFileInput, Rule, SecurityPolicy, Toolkit, ToolkitContext, TreeInput


def unknown_tools(toolkit: Toolkit, acme: AcmeToolkit) -> None:
    toolkit.invoke("read_flie", {"path": "x"})  # error: No tool is called "read_flie"; did you mean "read_file"?
    toolkit.invoke("read_flie", ReadFileInput(path="x"))  # error: No tool is called "read_flie"; did you mean "read_file"?
    toolkit.invoke("xyz", {})  # error: No tool is called "xyz"; if it joins at run time, pass JsonObject(...)
    acme.invoke("count_words", {"text": "x"})  # error: No tool is called "count_words"; did you mean "count-words"?
    toolkit.tools.read_flie(path="x")  # error: "Tools" has no attribute "read_flie"; maybe "read_file"?


def unknown_keys(toolkit: Toolkit, acme: AcmeToolkit) -> None:
    toolkit.invoke("read_file", {"paht": "x"})  # error: "read_file" has no argument "paht"; did you mean "path"?
    toolkit.invoke("read_file", {"path": "x", "start_lin": 1})  # error: "read_file" has no argument "start_lin"; did you mean "start_line"?
    toolkit.invoke("read_file", {"path": "x", "more": 1})  # error: "read_file" has no argument "more"; it takes "max_bytes", "max_lines", "path" and "start_line"
    toolkit.invoke("todoread", {"all": True})  # error: "todoread" has no argument "all"; it takes "status"
    acme.invoke("quote", {"lines": [{"itme": "apple"}]})  # error: "quote" has no argument "lines[0].itme"; did you mean "lines[0].item"?
    toolkit.tools.read_file(paht="x")  # error: "read_file" has no argument "paht"; did you mean "path"?
    toolkit.tools.read_file("x")  # error: "read_file" takes its arguments by keyword: write read_file(path=...)
    ReadFileInput(paht="x")  # error: "ReadFileInput" has no argument "paht"; did you mean "path"?


def missing_keys(toolkit: Toolkit, acme: AcmeToolkit) -> None:
    toolkit.invoke("read_file", {})  # error: "read_file" needs the argument "path"
    acme.invoke("add", {})  # error: "add" needs the arguments "a" and "b"
    acme.invoke("library_lend-book", {"id": 1, "reader": {}})  # error: "library_lend-book" needs the argument "reader.name"
    toolkit.tools.read_file()  # error: "read_file" needs the argument "path"
    ReadFileInput()  # error: "ReadFileInput" needs the argument "path"
    toolkit.invoke("read_file")  # error: invoke takes the name of a tool and its arguments: write invoke("read_file", {...})
    toolkit.invoke()  # error: invoke takes the name of a tool and its arguments: write invoke(name, args)


def mistyped_values(toolkit: Toolkit, acme: AcmeToolkit) -> None:
    toolkit.invoke("read_file", {"path": 1})  # error: Argument "path" of "read_file" must be str, not int
    toolkit.invoke("read_file", {"path": None})  # error: Argument "path" of "read_file" must be str, not None
    toolkit.invoke("tree", {"entry_kind": "al"})  # error: Argument "entry_kind" of "tree" must be "all" or "directory", not "al"; did you mean "all"?
    acme.invoke("quote", {"lines": [{"item": 1}]})  # error: Argument "lines[0].item" of "quote" must be str, not int
    toolkit.tools.read_file(path="x", start_line="3")  # error: Argument "start_line" of "read_file" must be int, not str
    toolkit.tools.tree(entry_kind="files")  # error: Argument "entry_kind" of "tree" must be "all" or "directory", not "files"
    acme.tools.add(a=1, b=2, note=None)  # error: Argument "note" of "add" must be str, not None
    ReadFileInput(path=1)  # error: Argument "path" of "ReadFileInput" must be str, not int


def several_mistakes(toolkit: Toolkit) -> None:
    toolkit.invoke(
        "read_file",
        {
            "paht": "x",  # error: "read_file" has no argument "paht"; did you mean "path"?
            "start_line": "3",  # error: Argument "start_line" of "read_file" must be int, not str
        },
    )


def other_arguments(toolkit: Toolkit, name: str, given: dict[str, object], call: ToolCall, maybe: str | None) -> None:
    toolkit.invoke("read_file", TreeInput())  # error: "read_file" takes a dict or ReadFileInput, not TreeInput
    toolkit.invoke("read_file", ["x"])  # error: "read_file" takes a dict or ReadFileInput, not list[str]
    toolkit.invoke("read_file", given)  # error: "read_file" cannot be checked with a dict[str, object]: write the dict in the call, annotate the variable as ReadFileArgs, or pass ReadFileInput.model_validate(...)
    toolkit.invoke(name, given)  # error: The name of the tool is known only at run time, so its arguments must be a JsonObject, not dict[str, object]: write JsonObject(...)
    toolkit.invoke(name, {"path": "x"})  # error: The name of the tool is known only at run time, so its arguments must be a JsonObject, not dict[str, str]: write JsonObject({...})
    toolkit.invoke(maybe, call.arguments)  # error: The name of a tool must be str, not str | None
    toolkit.invoke(1, call.arguments)  # error: The name of a tool must be str, not int


def wrong_outputs(toolkit: Toolkit, call: ToolCall) -> None:
    print(toolkit.invoke("read_file", {"path": "x"}).content.contnt)  # error: "ReadFileOutput" has no attribute "contnt"; maybe "content"?
    print(toolkit.tools.read_file(path="x").contnt)  # error: "ReadFileOutput" has no attribute "contnt"; maybe "content"?
    message = toolkit.invoke(call.name, call.arguments)
    print(message.content.sha256)  # error: Not every tool's output has "sha256", only that of "edit", "read_file" and "write_file": compare .name first
    print(message.content.sha255)  # error: No tool's output has "sha255"


def wrong_policies() -> None:
    SecurityPolicy(tools={"read_flie": "allow"})  # error: No tool is called "read_flie"; did you mean "read_file"?
    SecurityPolicy(tools={"read_file": "alow"})  # error: The decision for "read_file" must be "allow", "ask" or "deny", not "alow"; did you mean "allow"?
    SecurityPolicy(default="maybe")  # error: Argument "default" of SecurityPolicy must be "allow", "ask" or "deny", not "maybe"
    SecurityPolicy(rules=[Rule("deny", tools=["read_flie"])])  # error: No tool is called "read_flie"; did you mean "read_file"?
    Rule("deny", tools=["read_file", "tre"])  # error: No tool is called "tre"; did you mean "tree"?
    Rule("deny", permission="reed")  # error: Argument "permission" of Rule must be "read", "write", "execute", "network" or None, not "reed"; did you mean "read"?
    ToolkitContext(workspace=".", policy=None)  # error: Argument "policy" of ToolkitContext must be a SecurityPolicy of the same package, not None
    ToolkitContext(workspace=".", policy=AcmePolicy())  # error: The SecurityPolicy is of acme.generated, but ToolkitContext is of toolkit: import ToolkitContext from acme.generated
    create_agent_toolkit(ToolkitContext(workspace=".", policy=SecurityPolicy(tools={"tre": "allow"})))  # error: No tool is called "tre"; did you mean "tree"?


async def async_mistakes(toolkit: AsyncAcmeToolkit) -> None:
    await toolkit.invoke("read_flie", {"path": "x"})  # error: No tool is called "read_flie"; did you mean "read_file"?
    await toolkit.invoke("read_file", {"paht": "x"})  # error: "read_file" has no argument "paht"; did you mean "path"?
    await toolkit.tools.read_file(paht="x")  # error: "read_file" has no argument "paht"; did you mean "path"?


def mistakes_inside(toolkit: Toolkit) -> None:
    toolkit.invoke("read_file", {"path": toolkit.invoke("read_file", {"paht": "x"}).content.path})  # error: "read_file" has no argument "paht"; did you mean "path"?
    toolkit.invoke("read_file", ReadFileInput(paht="x"))  # error: "ReadFileInput" has no argument "paht"; did you mean "path"?
    args: ReadFileArgs = {"path": "x"}
    toolkit.invoke("tree", args)  # error: "tree" takes a dict or TreeInput, not ReadFileArgs
    toolkit.invoke("read_file", JsonObject(1))  # error: Argument 1 to "JsonObject" has incompatible type "int"; expected "dict[str, object]"
