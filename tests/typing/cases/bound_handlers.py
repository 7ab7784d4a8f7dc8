"""Handlers are bound by name and checked against their tool's input and output."""

from typing import Annotated

from acme.generated import (
    AddInput,
    AddOutput,
    CountWordsInput,
    CountWordsOutput,
    FailInput,
    FailOutput,
    HoldInput,
    HoldOutput,
    ShoutInput,
    ShoutOutput,
    bind,
)
from acme.tools.imported_handlers import find_book, lend_book, search_shapes
from toolkit import Depends, HandlerParts, ToolContext


class Database:
    pass


def add(args: AddInput, ctx: ToolContext) -> AddOutput:
    raise NotImplementedError


def count(args: CountWordsInput, ctx: ToolContext, database: Annotated[Database, Depends(Database)]) -> CountWordsOutput:
    raise NotImplementedError


async def fail(args: FailInput, ctx: ToolContext, depth: int = 1) -> FailOutput:
    raise NotImplementedError


def hold(args: HoldInput, ctx: ToolContext) -> HoldOutput:
    raise NotImplementedError


async def shout(args: ShoutInput, ctx: ToolContext) -> ShoutOutput:
    raise NotImplementedError


def wrong_input(args: HoldInput, ctx: ToolContext) -> AddOutput:
    raise NotImplementedError


def wrong_output(args: AddInput, ctx: ToolContext) -> HoldOutput:
    raise NotImplementedError


async def wrong_awaited_output(args: AddInput, ctx: ToolContext) -> HoldOutput:
    raise NotImplementedError


def added(output: AddOutput) -> str:
    raise NotImplementedError


bind(add=HandlerParts(add, text=added), count_words=count, fail=HandlerParts(fail), hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)
bind(add=HandlerParts(wrong_output), count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)  # error
bind(add=HandlerParts(wrong_input), count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)  # error
bind(add=add, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)
bind(add=wrong_input, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)  # error
bind(add=wrong_output, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)  # error
bind(add=wrong_awaited_output, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout)  # error
bind(add=add, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes)  # error
bind(add=add, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shout=shout)  # error
bind(add=add, count_words=count, fail=fail, hold=hold, library_find=find_book, library_lend_book=lend_book, shapes_search=search_shapes, shout=shout, more=add)  # error
