"""One async toolkit in one event loop after the other, as with several ``asyncio.run``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Annotated

from tests.packs.conftest import filled, servers_in
from tests.packs.test_mcp_endings import odd
from toolkit import DependencyKey, Depends, Pack, ToolContext


def test_a_server_is_there_in_each_loop(served: ModuleType, tmp_path: Path) -> None:
    context = served.ToolkitContext(filled(tmp_path / "ws"), served.SecurityPolicy(default="allow"))
    toolkit = served.create_async_agent_toolkit(context, packs=[odd("obeys")])

    async def count_twice() -> list[str]:
        return [(await toolkit.tools.odd_text(text="count")).text for _ in range(2)]

    for _ in range(3):
        assert asyncio.run(count_twice()) == ["1", "2"]
    loop = asyncio.new_event_loop()  # closed without a chance for what it left
    assert loop.run_until_complete(count_twice()) == ["1", "2"]
    loop.close()
    assert asyncio.run(count_twice()) == ["1", "2"]
    asyncio.run(toolkit.close())
    assert servers_in(tmp_path / "ws") == []


events: list[str] = []
seen: list[str] = []


async def connect() -> AsyncIterator[str]:
    events.append("open")
    try:
        yield f"connection {events.count('open')}"
    finally:
        events.append("close")


CONNECTION = DependencyKey("connection", connect, lifetime="run")


def give_name(link: Annotated[str, Depends(CONNECTION)]) -> str:
    return f"named {link}"


NAMED = DependencyKey("named", give_name, lifetime="run")


async def ask(
    args: object, ctx: ToolContext, name: Annotated[str, Depends(NAMED)], link: Annotated[str, Depends(CONNECTION)]
) -> dict[str, int]:
    seen.append(f"{link}, {name}")
    return {"n": len(seen)}


def test_what_was_made_in_a_loop_that_has_ended_is_made_again(served: ModuleType, tmp_path: Path) -> None:
    """Also what was made from such a value."""
    context = served.ToolkitContext(filled(tmp_path / "ws"), served.SecurityPolicy(default="allow"))
    toolkit = served.create_async_agent_toolkit(context, packs=[Pack({"odd": ask})])

    async def ask_twice() -> None:
        await toolkit.tools.odd(text="x")
        await toolkit.tools.odd(text="x")

    for _ in range(2):
        asyncio.run(ask_twice())
    assert seen == [f"connection {number}, named connection {number}" for number in (1, 1, 2, 2)]
    asyncio.run(toolkit.close())
    assert events == ["open", "close"] * 2
