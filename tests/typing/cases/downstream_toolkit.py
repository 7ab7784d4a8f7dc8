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


def refuses_wrong_ones(toolkit: AcmeToolkit) -> None:
    toolkit.invoke("count_words", {"text": "x"})  # error
    toolkit.invoke("add", {"a": 1})  # error
    toolkit.tools.add(a=1, b=2, note=None)  # error
    SecurityPolicy(tools={"count_words": "allow"})  # error
    bind()  # error
