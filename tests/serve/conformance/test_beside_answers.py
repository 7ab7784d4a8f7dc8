"""What a client gets beside the answer to a call, and with an error: what the suite found missing, without the suite."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.serve.conformance.server import SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serve-conformance")]

ERAS = ["legacy", "2026-07-28"]


@pytest.mark.parametrize("era", ERAS)
def test_progress_of_a_tool_that_ends_at_once_is_not_lost(url: str, era: Any) -> None:
    async def call() -> list[str | None]:
        told: list[str | None] = []
        is_last = asyncio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)
            if message == "100 of 100":
                is_last.set()

        async with asyncio.timeout(SECONDS), Client(url, mode=era) as client:
            await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
            await is_last.wait()
        return told

    assert asyncio.run(call()) == ["0 of 100", "50 of 100", "100 of 100"]


def test_what_a_handler_logs_reaches_the_client_at_every_level(url: str) -> None:
    async def call() -> list[tuple[str, str | None, Any]]:
        told: list[tuple[str, str | None, Any]] = []
        is_last = asyncio.Event()

        async def note(params: types.LoggingMessageNotificationParams) -> None:
            told.append((params.level, params.logger, params.data))
            if params.data == "Tool execution completed":
                is_last.set()

        async with asyncio.timeout(SECONDS), Client(url, mode="legacy", logging_callback=note) as client:
            await client.call_tool("test_tool_with_logging", {})
            await is_last.wait()
        return told

    texts = ["Tool execution started", "Tool processing data", "Tool execution completed"]
    assert asyncio.run(call()) == [("info", "test_tool_with_logging", text) for text in texts]


def test_what_the_toolkit_itself_logs_stays_with_the_server(url: str) -> None:
    async def call() -> tuple[str, list[str | None]]:
        loggers: list[str | None] = []
        is_last = asyncio.Event()

        async def note(params: types.LoggingMessageNotificationParams) -> None:
            loggers.append(params.logger)
            if params.data == "Tool execution completed":
                is_last.set()

        async with asyncio.timeout(SECONDS), Client(url, mode="legacy", logging_callback=note) as client:
            result = await client.call_tool("test_unexpected_error", {})
            await client.call_tool("test_tool_with_logging", {})
            await is_last.wait()
        return str(result.content), loggers

    text, loggers = asyncio.run(call())
    assert "INTERNAL" in text and "/a/place" not in text
    assert loggers == ["test_tool_with_logging"] * 3


def test_a_message_that_cannot_be_formatted_does_not_fail_its_tool(url: str) -> None:
    async def call() -> types.CallToolResult:
        async with asyncio.timeout(SECONDS), Client(url, mode="legacy") as client:
            return await client.call_tool("test_tool_with_wrong_logging", {})

    result = asyncio.run(call())
    assert not result.is_error


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_resource_is_named_in_the_error(url: str, era: Any) -> None:
    async def read() -> tuple[int, Any]:
        async with asyncio.timeout(SECONDS), Client(url, mode=era) as client:
            with pytest.raises(MCPError) as caught:
                await client.read_resource("test://nothing")
            return caught.value.code, caught.value.data

    assert asyncio.run(read()) == (types.INVALID_PARAMS, {"uri": "test://nothing"})
