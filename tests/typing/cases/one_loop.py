"""The loop: a driver and a toolkit of the same flavour, hooks with the types of calls, a conversation."""

from collections.abc import Sequence
from contextlib import aclosing, closing
from typing import assert_type, reveal_type

import toolkit
from toolkit import (
    AsyncDriver,
    AsyncStreamingDriver,
    AsyncToolkit,
    ChatMessage,
    Conversation,
    Driver,
    QueryOptions,
    QueryResult,
    RunError,
    RunLimits,
    StreamingDriver,
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
from toolkit.wire import AnswerEvent


class ScriptedDriver:
    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> QueryResult:
        return QueryResult("hello")


class AsyncScriptedDriver:
    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> QueryResult:
        return QueryResult("hello")


def look(call: ToolCall) -> ToolResult | None:
    return None


async def look_async(call: ToolCall) -> ToolResult | None:
    return None


def is_written_next_to_the_package(tk: Toolkit, driver: AnthropicDriver) -> None:
    assert_type(toolkit.run(driver, tk, "hi"), Conversation)
    toolkit.run(tk, driver, "hi")  # error


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
    reveal_type(await run_async(AsyncScriptedDriver(), toolkit, "hi"))  # revealed: Conversation


def yields_events(toolkit: Toolkit, driver: AnthropicDriver) -> None:
    made: StreamingDriver = driver
    for event in stream_run(made, toolkit, "hi"):
        assert_type(event, RunEvent)
        if isinstance(event, RunEnded):
            reveal_type(event.conversation)  # revealed: Conversation
        if isinstance(event, CallAnswered):
            reveal_type(event.result)  # revealed: ToolResult


async def yields_events_async(toolkit: AsyncToolkit, driver: AsyncAnthropicDriver) -> None:
    made: AsyncStreamingDriver = driver
    async for event in stream_run_async(made, toolkit, "hi"):
        assert_type(event, RunEvent)


def closes_streams(toolkit: Toolkit, driver: AnthropicDriver) -> None:
    with closing(stream_run(driver, toolkit, "hi")) as events:
        assert_type(next(events), RunEvent)
    answer = driver.stream_query("hi")
    with closing(answer.events) as answer_events, closing(answer.stream) as texts:
        assert_type(next(answer_events), AnswerEvent)
        assert_type(next(texts), str)


async def closes_streams_async(toolkit: AsyncToolkit, driver: AsyncAnthropicDriver) -> None:
    async with aclosing(stream_run_async(driver, toolkit, "hi")) as events:
        assert_type(await anext(events), RunEvent)
    answer = await driver.stream_query("hi")
    async with aclosing(answer.events) as answer_events, aclosing(answer.stream) as texts:
        assert_type(await anext(answer_events), AnswerEvent)
        assert_type(await anext(texts), str)


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
    stream_run(ScriptedDriver(), toolkit, "hi")  # error
    stream_run_async(AsyncScriptedDriver(), async_toolkit, "hi")  # error
