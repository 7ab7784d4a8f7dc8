"""Handlers are bound by name and checked against their tool's input and output."""

from typing import Annotated

from generated import DoneInput, DoneOutput, ListInput, ListOutput, ReadFileInput, ReadFileOutput, TreeInput, TreeOutput, bind
from toolkit import ToolContext


class Database:
    pass


def read_file(args: ReadFileInput, ctx: ToolContext) -> ReadFileOutput:
    raise NotImplementedError


def tree(args: TreeInput, ctx: ToolContext, database: Annotated[Database, "injected"]) -> TreeOutput:
    raise NotImplementedError


async def list_directory(args: ListInput, ctx: ToolContext, depth: int = 1) -> ListOutput:
    raise NotImplementedError


def done(args: DoneInput, ctx: ToolContext) -> DoneOutput:
    raise NotImplementedError


def wrong_input(args: TreeInput, ctx: ToolContext) -> ReadFileOutput:
    raise NotImplementedError


def wrong_output(args: ReadFileInput, ctx: ToolContext) -> TreeOutput:
    raise NotImplementedError


async def wrong_awaited_output(args: ReadFileInput, ctx: ToolContext) -> TreeOutput:
    raise NotImplementedError


bind(read_file=read_file, tree=tree, list=list_directory, done=done)
bind(read_file=wrong_input, tree=tree, list=list_directory, done=done)  # error
bind(read_file=wrong_output, tree=tree, list=list_directory, done=done)  # error
bind(read_file=wrong_awaited_output, tree=tree, list=list_directory, done=done)  # error
bind(read_file=read_file, tree=tree, list=list_directory)  # error
bind(read_file=read_file, tree=tree, list=list_directory, done=done, more=done)  # error
