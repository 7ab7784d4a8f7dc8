"""The loop: a driver and a toolkit of the same flavour, hooks with the types of calls, a conversation."""

from collections.abc import Sequence
from typing import assert_type, reveal_type

from toolkit import (
    AsyncDriver,
    AsyncToolkit,
    ChatMessage,
    Conversation,
    Driver,
    QueryOptions,
    QueryResult,
    RunError,
    RunLimits,
    StreamResult,
    ToolCall,
    Toolkit,
    ToolResult,
    run,
    run_async,
    stream_run,
    stream_run_async,
)
from toolkit.adapters.anthropic import AnthropicDriver, AsyncAnthropicDriver
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.loop import CallAnswered, RunEnded, RunEvent


class ScriptedDriver:
    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> QueryResult:
        return QueryResult("hello")

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> StreamResult:
        raise NotImplementedError


def look(call: ToolCall) -> ToolResult | None:
    return None


async def look_async(call: ToolCall) -> ToolResult | None:
    return None


def returns_a_conversation(toolkit: Toolkit, openai: OpenAIChatDriver, anthropic: AnthropicDriver) -> None:
    for driver in (openai, anthropic, ScriptedDriver()):
        made: Driver = driver
        conversation = run(made, toolkit, "hi", limits=RunLimits(turns=3), before_call=look)
        reveal_type(conversation)  # revealed: Conversation
        assert_type(conversation.answer, str)
        assert_type(run(made, toolkit, conversation.add("And now?")), Conversation)
        assert_type(run(made, toolkit, conversation.messages), Conversation)


async def returns_a_conversation_async(toolkit: AsyncToolkit, driver: AsyncAnthropicDriver) -> None:
    made: AsyncDriver = driver
    reveal_type(await run_async(made, toolkit, "hi", before_call=look_async))  # revealed: Conversation
    reveal_type(await run_async(made, toolkit, "hi", before_call=look))  # revealed: Conversation


def yields_events(toolkit: Toolkit, driver: AnthropicDriver) -> None:
    for event in stream_run(driver, toolkit, "hi"):
        assert_type(event, RunEvent)
        if isinstance(event, RunEnded):
            reveal_type(event.conversation)  # revealed: Conversation
        if isinstance(event, CallAnswered):
            reveal_type(event.result)  # revealed: ToolResult


async def yields_events_async(toolkit: AsyncToolkit, driver: AsyncAnthropicDriver) -> None:
    async for event in stream_run_async(driver, toolkit, "hi"):
        assert_type(event, RunEvent)


def raises_with_the_conversation(error: RunError) -> None:
    assert_type(error.conversation, Conversation)
    assert_type(error.result, QueryResult | None)


async def refuses_what_does_not_fit(
    toolkit: Toolkit, async_toolkit: AsyncToolkit, driver: AnthropicDriver, async_driver: AsyncAnthropicDriver
) -> None:
    run(async_driver, toolkit, "hi")  # error
    run(driver, async_toolkit, "hi")  # error
    await run_async(driver, async_toolkit, "hi")  # error
    await run_async(async_driver, toolkit, "hi")  # error
    run(driver, toolkit, "hi", before_call=look_async)  # error
    run(driver, toolkit, ["hi"])  # error
    run(driver, toolkit, "hi", limits=3)  # error
    stream_run(async_driver, toolkit, "hi")  # error
    stream_run_async(driver, async_toolkit, "hi")  # error
