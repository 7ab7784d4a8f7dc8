"""A literal name decides what goes in and what comes out."""

from typing import reveal_type

from toolkit.generated import ReadFileArgs, ReadFileInput, Toolkit, TreeInput


def gives_the_output_of_the_tool(toolkit: Toolkit) -> None:
    reveal_type(toolkit.invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke("read_file", ReadFileInput(path="x")).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke("read_file", {"path": "x"}).name)  # revealed: Literal['read_file']
    reveal_type(toolkit.invoke("read_file", {"path": "x"}).role)  # revealed: Literal['function']
    reveal_type(toolkit.invoke("read_file", {"path": "x", "start_line": 3}).content.content)  # revealed: str
    reveal_type(toolkit.invoke("list", {}).content.entries)  # revealed: list[ListOutputEntry]
    reveal_type(toolkit.invoke("tree", {"exclude": ["*.o"]}).content.root.children)  # revealed: list[TreeOutputNode] | None
    reveal_type(toolkit.invoke("done", {"message": "x"}).text())  # revealed: str


def takes_a_variable_that_says_its_type(toolkit: Toolkit) -> None:
    args: ReadFileArgs = {"path": "x"}
    args["start_line"] = 3
    reveal_type(toolkit.invoke("read_file", args).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke("read_file", ReadFileArgs(path="x")).content)  # revealed: ReadFileOutput


def refuses_wrong_calls(toolkit: Toolkit) -> None:
    toolkit.invoke("read_flie", {"path": "x"})  # error
    toolkit.invoke("read_flie", ReadFileInput(path="x"))  # error
    toolkit.invoke("read_file", {"paht": "x"})  # error
    toolkit.invoke("read_file", {})  # error
    toolkit.invoke("read_file", {"path": "x", "more": 1})  # error
    toolkit.invoke("read_file", {"path": 1})  # error
    toolkit.invoke("read_file", {"path": "x", "start_line": "3"})  # error
    toolkit.invoke("read_file", {"path": None})  # error
    toolkit.invoke("tree", {"entry_kind": "files"})  # error
    toolkit.invoke("read_file", TreeInput())  # error
    toolkit.invoke("read_file", ReadFileInput(paht="x"))  # error
    toolkit.invoke("read_file", ["x"])  # error
    toolkit.invoke("read_file", "x")  # error
    toolkit.invoke("read_file", None)  # error
    toolkit.invoke("read_file", object())  # error
    toolkit.invoke("read_file")  # error


def refuses_what_the_output_lacks(toolkit: Toolkit) -> None:
    print(toolkit.invoke("read_file", {"path": "x"}).content.lines)  # error
    print(toolkit.invoke("read_file", {"path": "x"}).contents)  # error
    print(toolkit.invoke("list", {}).content.entries[0].nmae)  # error
