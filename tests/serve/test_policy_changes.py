"""A policy file that changes on disk while clients are connected."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from pydantic import FileUrl

from tests.serve.clients import StreamWatch, serving, talk, text_of

pytestmark = pytest.mark.slow


class Listener:
    """What a client is told: changed lists and log messages."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[types.LoggingMessageNotificationParams] = asyncio.Queue()
        self.changes: asyncio.Queue[None] = asyncio.Queue()

    async def on_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            await self.changes.put(None)

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        await self.messages.put(params)


def replace_file(file: Path, text: str) -> None:
    """As an editor does it: another file in the place of the old one."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, file)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


def test_clients_are_told_that_the_list_changed_and_see_the_new_one(workspace: Path, policy: Path) -> None:
    listener = Listener()

    async def run(client: Client) -> None:
        assert await names(client) == ["read_file"]
        replace_file(policy, '[tools]\nglob = "allow"\n')
        await listener.changes.get()
        assert await names(client) == ["glob"]
        refused = await client.call_tool("read_file", {"path": "a.txt"})
        assert refused.is_error and text_of(refused).startswith("TOOL_NOT_ALLOWED: ")

    policy.write_text('[tools]\nread_file = "allow"\n')
    options = ("--workspace", str(workspace), "--policy", str(policy))
    talk(run, *options, message_handler=listener.on_message)


def test_clients_of_the_newest_revision_are_told_by_subscription(workspace: Path, policy: Path) -> None:
    async def run(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as changes:
            replace_file(policy, '[tools]\nglob = "allow"\n')
            async for _ in changes:
                break
        assert await names(client) == ["glob"]

    talk(run, "--workspace", str(workspace), "--policy", str(policy), mode="2026-07-28")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[tools]\nread_flie = "deny"\n', "policy.toml:2:1: the policy names 'read_flie', which is not a tool"),
        pytest.param("[tools\n", "policy.toml:1", marks=pytest.mark.whole),
        (None, "policy.toml is gone"),
    ],
)
def test_a_policy_that_cannot_be_used_changes_nothing_and_says_why(
    workspace: Path, policy: Path, text: str | None, says: str
) -> None:
    listener = Listener()

    async def run(client: Client) -> None:
        await streams.wait_for(1)
        before = await names(client)
        if text is None:
            policy.unlink()
        else:
            replace_file(policy, text)
        note = await listener.messages.get()
        assert note.level == "error"
        assert note.data == "the policy file has a mistake; the earlier policy stays in force"
        assert await names(client) == before
        assert not (await client.call_tool("read_file", {"path": "a.txt"})).is_error
        # A later file that is right is used.
        replace_file(policy, '[tools]\nglob = "allow"\n')
        await listener.changes.get()
        assert await names(client) == ["glob"]

    with StreamWatch() as streams, serving("--workspace", str(workspace), "--policy", str(policy)) as server:
        server.talk(run, message_handler=listener.on_message, logging_callback=listener.on_log)
        _, said = server.stop()
    assert "the policy was not replaced, the earlier one stays in force: " in said and says in said


def test_a_call_that_runs_ends_under_the_policy_that_allowed_it(workspace: Path, policy: Path) -> None:
    listener = Listener()
    policy.write_text('[tools]\nbash = "allow"\nread_file = "allow"\n')
    (workspace / "go").write_text("")

    async def run(client: Client) -> None:
        started = asyncio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            started.set()

        command = "echo begun; while [ -e go ]; do sleep 0.05; done; echo over"
        running = asyncio.create_task(client.call_tool("bash", {"command": command}, progress_callback=note))
        await started.wait()
        replace_file(policy, '[tools]\nread_file = "allow"\n')
        await listener.changes.get()
        refused = await client.call_tool("bash", {"command": "true"})
        assert refused.is_error
        (workspace / "go").unlink()
        assert "over" in text_of(await running)

    options = ("--workspace", str(workspace), "--policy", str(policy))
    talk(run, *options, message_handler=listener.on_message)


def test_a_client_in_another_folder_is_told_where_the_tools_work(workspace: Path, tmp_path: Path) -> None:
    listener = Listener()

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(f"file://{tmp_path}/elsewhere"))])

    async def run(client: Client) -> str:
        await client.list_tools()
        return str((await listener.messages.get()).data)

    options = ("--workspace", str(workspace), "--preset", "read-only")
    note = talk(run, *options, list_roots_callback=roots, logging_callback=listener.on_log)
    assert f"works in {tmp_path}/elsewhere, but the tools work in {workspace}" in note
