"""A user's toolkit: its own tools and the built-in ones in one surface."""

from typing import reveal_type

from acme.generated import AcmeToolkit, SecurityPolicy, bind
from toolkit import ToolCall


def gives_both(toolkit: AcmeToolkit, call: ToolCall) -> None:
    reveal_type(toolkit.invoke("add", {"a": 1, "b": 2}).content)  # revealed: AddOutput
    reveal_type(toolkit.invoke("read_file", {"path": "x"}).content)  # revealed: ReadFileOutput
    reveal_type(toolkit.invoke("count-words", {"text": "x"}).content.text)  # revealed: str
    reveal_type(toolkit.tools.count_words(text="x"))  # revealed: CountWordsOutput
    reveal_type(toolkit.tools.add(a=1, b=2, note="x").sum)  # revealed: int
    message = toolkit.invoke(call.name, call.arguments)
    if message.name == "count-words":
        reveal_type(message.content)  # revealed: CountWordsOutput


def gives_imported_ones(toolkit: AcmeToolkit) -> None:
    reveal_type(toolkit.invoke("library_lend-book", {"id": 1, "reader": {"name": "x"}}).content.text)  # revealed: str
    reveal_type(toolkit.tools.maths_add(numbers=[1, 2.5]).root)  # revealed: float
    reveal_type(toolkit.tools.shapes_search(type="circle").names)  # revealed: list[str]


def refuses_wrong_ones(toolkit: AcmeToolkit) -> None:
    toolkit.invoke("count_words", {"text": "x"})  # error
    toolkit.invoke("add", {"a": 1})  # error
    toolkit.tools.add(a=1, b=2, note=None)  # error
    toolkit.invoke("find", {"title": "x"})  # error
    toolkit.invoke("library_lend-book", {"id": 1, "reader": {}})  # error
    toolkit.invoke("library_lend-book", {"id": 1, "reader": {"nam": "x"}})  # error
    toolkit.tools.library_lend_book(id=1, reader={"nam": "x"})  # error
    toolkit.tools.maths_add(numbers=["1"])  # error
    toolkit.tools.shapes_search(type="line")  # error
    SecurityPolicy(tools={"count_words": "allow"})  # error
    bind()  # error
