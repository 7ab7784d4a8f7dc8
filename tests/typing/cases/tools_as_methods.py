"""Every tool as a method with keywords of its own."""

from typing import reveal_type

from toolkit.generated import Toolkit


def gives_the_output(toolkit: Toolkit) -> None:
    reveal_type(toolkit.tools.read_file(path="x", start_line=3))  # revealed: ReadFileOutput
    reveal_type(toolkit.tools.list())  # revealed: ListOutput
    reveal_type(toolkit.tools.tree(exclude=["*.o"], max_depth=1).total_dirs)  # revealed: int
    reveal_type(toolkit.tools.done(message="x").message)  # revealed: str


def refuses_wrong_calls(toolkit: Toolkit) -> None:
    toolkit.tools.read_flie(path="x")  # error
    toolkit.tools.read_file(paht="x")  # error
    toolkit.tools.read_file()  # error
    toolkit.tools.read_file("x")  # error
    toolkit.tools.read_file(path="x", start_line="3")  # error
    toolkit.tools.read_file(path="x", start_line=None)  # error
    toolkit.tools.tree(entry_kind="files")  # error
    print(toolkit.tools.read_file(path="x").lines)  # error


def keeps_other_names_off_the_tools(toolkit: Toolkit) -> None:
    toolkit.read_file(path="x")  # error
    toolkit.tools.invoke("read_file", {"path": "x"})  # error
