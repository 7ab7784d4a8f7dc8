"""A tool made of a function stays that function to a checker; joined to a toolkit, it is called by a dynamic name."""

from typing import Annotated, assert_type, reveal_type

from pydantic import BaseModel

import acme.generated
from acme.functions import Quote, quote
from acme.generated import AcmeToolkit, AnyToolMessage, AsyncAcmeToolkit, PastQuotesOutput, QuoteOutput
from toolkit import (
    Depends,
    DynamicContext,
    DynamicPolicy,
    FunctionTool,
    JsonObject,
    SecurityPolicy,
    ToolContext,
    ToolDefinition,
    ToolkitContext,
    ToolRegistry,
    ToolResult,
    create_agent_toolkit,
    define_tool,
    tool,
)
from toolkit.runtime.functions import LazyTool


class Database:
    pass


class Point(BaseModel):
    x: int


def open_database() -> Database:
    return Database()


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(name="find.it", permissions=["read"])
async def find(query: str, database: Annotated[Database, Depends(open_database)], ctx: ToolContext) -> list[str]:
    """Find rows."""
    return [query]


def move(point: Point, ctx: ToolContext) -> Point:
    return point


moved = define_tool(move, name="move", description="Move a point.", input=Point)
plus = define_tool(name="plus", description="Add two numbers.", execute=add)


def make() -> FunctionTool[[int], str]:
    return define_tool(str_of, name="text_of")


async def make_for(context: ToolkitContext) -> FunctionTool[[int], str]:
    return define_tool(str_of, name="text_of")


def str_of(number: int) -> str:
    return str(number)


def stays_the_function() -> None:
    reveal_type(add(1, 2))  # revealed: int
    reveal_type(add(a=1))  # revealed: int
    reveal_type(moved(Point(x=1), ToolContext.standalone()))  # revealed: Point
    reveal_type(add.name)  # revealed: str
    assert_type(add.definition, ToolDefinition)
    assert_type(add.execute_raw("{}", ToolContext.standalone()), ToolResult)
    assert_type(define_tool(name="text_of", factory=make), LazyTool)
    assert_type(define_tool(name="text_of", factory=make_for, permissions=["read"]), LazyTool)


async def stays_async(ctx: ToolContext) -> None:
    reveal_type(await find("x", Database(), ctx))  # revealed: list[str]
    assert_type(await add.execute_raw_async("{}", ctx), ToolResult)


def refuses_wrong_calls(ctx: ToolContext) -> None:
    add("1", 2)  # error
    add()  # error
    add(1, 2, 3)  # error
    add(c=1)  # error
    text: str = add(1)  # error
    find("x", Database())  # error
    find("x", None, ctx)  # error
    moved(1, ctx)  # error
    plus("1")  # error
    add.execute_raw({"a": 1}, ctx)  # error
    add.run  # error


def refuses_wrong_definitions() -> None:
    define_tool(add, permissions=["reed"])  # error
    define_tool(move, input=str)  # error
    define_tool(str_of, input=Point)  # error
    define_tool(name="text_of", factory=1)  # error
    tool(1)  # error


def joins_a_toolkit() -> None:
    registry = ToolRegistry()
    registry.register(add, permissions=["read"])
    context = DynamicContext(".", DynamicPolicy(default="deny", tools={"add": "allow"}))
    toolkit = create_agent_toolkit(context, packs=["toolkit.builtin:BUILTIN", registry, moved])
    toolkit.invoke("add", JsonObject({"a": 1}))
    toolkit.invoke("add", {"a": 1})  # error
    acme.generated.create_agent_toolkit(context, packs=[registry])
    SecurityPolicy(tools={"add": "allow"})  # error
    create_agent_toolkit(context, packs=[str_of])  # error
    registry.register(str_of)  # error
    registry.enabled(["reed"])  # error


def is_typed_once_generated(toolkit: AcmeToolkit) -> None:
    reveal_type(toolkit.invoke("quote", {"lines": [{"item": "apple"}]}).content)  # revealed: Quote
    reveal_type(toolkit.tools.quote(lines=[{"item": "apple", "count": 2}], currency="USD").missing)  # revealed: list[str]
    reveal_type(toolkit.invoke("greet-kindly", {"name": "x"}).content.text)  # revealed: str
    toolkit.invoke("quote", {"lines": [{"itme": "apple"}]})  # error
    toolkit.invoke("quote", {"lines": [], "prices": {}})  # error
    toolkit.tools.quote(lines=[], currency="GBP")  # error
    print(toolkit.tools.quote(lines=[]).sum)  # error


def returns_the_functions_own_types(toolkit: AcmeToolkit, message: AnyToolMessage) -> None:
    assert_type(toolkit.invoke("quote", {"lines": []}).content, Quote)
    reveal_type(toolkit.invoke("past_quotes", {}).content)  # revealed: list[Quote]
    reveal_type(toolkit.tools.past_quotes()[0].total)  # revealed: int
    reveal_type(toolkit.tools.best_offer(items=["pear"]))  # revealed: Offer | None
    print(toolkit.tools.past_quotes().root)  # error
    print(toolkit.tools.best_offer(items=[]).saved)  # error
    if message.name == "past_quotes":
        reveal_type(message.content)  # revealed: list[Quote]
    match message.name:
        case "best_offer" if message.content:
            reveal_type(message.content.saved)  # revealed: int
        case _:
            pass
    if message.name == "quote" and isinstance(message.content, Quote):
        reveal_type(message.content)  # revealed: Quote


async def returns_them_when_awaited(toolkit: AsyncAcmeToolkit, output: PastQuotesOutput) -> None:
    reveal_type(await toolkit.tools.past_quotes())  # revealed: list[Quote]
    reveal_type((await toolkit.invoke("best_offer", {"items": []})).content)  # revealed: Offer | None
    reveal_type(output)  # revealed: list[Quote]
    QuoteOutput(total=1, currency="EUR")
    QuoteOutput(total=1, currency="GBP")  # error


def keeps_the_types_of_the_module(prices: dict[str, int], ctx: ToolContext) -> None:
    reveal_type(quote([], prices, ctx).total)  # revealed: int
    quote([], prices)  # error
