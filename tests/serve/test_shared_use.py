"""Several clients of one server: what one of them does, or leaves undone, is not the others' problem."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from pydantic import FileUrl

from tests.serve.clients import SECONDS, StreamWatch, serving, talk, text_of
from tests.serve.test_policy_changes import Listener, replace_file

pytestmark = pytest.mark.slow


OPEN = 20
"""How many questions one client may have open."""


class Thinker:
    """A person who takes as long as the test wants."""

    def __init__(self) -> None:
        self.shown = 0
        self.asked = asyncio.Condition()
        self.decided = asyncio.Event()

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        async with self.asked:
            self.shown += 1
            self.asked.notify_all()
        await self.decided.wait()
        return types.ElicitResult(action="accept", content={"approve": True})

    async def wait_for(self, count: int) -> None:
        async with self.asked:
            await self.asked.wait_for(lambda: self.shown >= count)


def writing(number: int) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": f"{number}.txt", "content": ""}


def test_open_questions_hold_up_no_other_client_and_are_bounded(workspace: Path, policy: Path) -> None:
    """More clients with open questions than calls may run at the same time; a further client reads a file."""

    async def run(_: Client) -> None:
        people = [Thinker(), Thinker()]
        asking = [Client(server.url, mode="legacy", elicitation_callback=person) for person in people]
        async with asking[0], asking[1]:
            calls = [
                asyncio.create_task(client.call_tool(*writing(index * OPEN + number)))
                for index, client in enumerate(asking)
                for number in range(OPEN)
            ]
            for person in people:
                await person.wait_for(OPEN)
            beyond = await asking[0].call_tool(*writing(99))
            assert beyond.is_error and f"{OPEN} questions wait for the person already" in text_of(beyond)
            async with Client(server.url, mode="legacy") as other:
                assert "one" in text_of(await other.call_tool("read_file", {"path": "a.txt"}))
            for person in people:
                person.decided.set()
            assert not any(result.is_error for result in await asyncio.gather(*calls))

    with serving("--workspace", str(workspace), "--policy", str(policy)) as server:
        server.talk(run)
    assert len(list(workspace.glob("*.txt"))) == 2 * OPEN + 1


def test_a_call_that_waits_for_its_turn_is_judged_by_the_policy_of_that_moment(workspace: Path, policy: Path) -> None:
    """All turns are taken by commands; the call behind them gets its turn after the policy has changed."""
    listener = Listener()
    policy.write_text('[tools]\nbash = "allow"\nread_file = "allow"\nlist = "allow"\n')
    (workspace / "go").write_text("")

    async def run(client: Client) -> None:
        started = 0
        everyone = asyncio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            nonlocal started
            started += message == "begun\n"
            if started == 32:
                everyone.set()

        command = "echo begun; while [ -e go ]; do sleep 0.1; done"
        running = [
            asyncio.create_task(client.call_tool("bash", {"command": command}, progress_callback=note))
            for _ in range(32)
        ]
        await everyone.wait()
        waiting = asyncio.create_task(client.call_tool("read_file", {"path": "a.txt"}))
        assert len((await client.list_tools()).tools) == 3  # the call before it has arrived, too
        replace_file(policy, '[tools]\nlist = "allow"\n')
        await listener.changes.get()
        (workspace / "go").unlink()
        refused = await waiting
        assert refused.is_error and text_of(refused).startswith("TOOL_NOT_ALLOWED: ")
        assert not any(result.is_error for result in await asyncio.gather(*running))

    options = ("--workspace", str(workspace), "--policy", str(policy))
    talk(run, *options, message_handler=listener.on_message)


def test_a_note_reaches_whom_it_concerns_once_and_only_if_it_is_wanted(workspace: Path, policy: Path) -> None:
    def roots_in(folder: str) -> Any:
        async def roots(context: Any) -> types.ListRootsResult:
            return types.ListRootsResult(roots=[types.Root(uri=FileUrl(f"file://{folder}"))])

        return roots

    async def run() -> None:
        alice, bob = Listener(), Listener()
        first = Client(
            server.url, mode="legacy", list_roots_callback=roots_in("/home/alice"),
            logging_callback=alice.on_log, message_handler=alice.on_message,
        )  # fmt: skip
        second = Client(server.url, mode="legacy", logging_callback=bob.on_log, message_handler=bob.on_message)
        with StreamWatch() as streams:
            async with second, first:
                await use(first, second, alice, bob, streams)

    async def use(first: Client, second: Client, alice: Listener, bob: Listener, streams: StreamWatch) -> None:
        await first.list_tools()
        await streams.wait_for(2)
        await second.session.send_request(
            types.SetLevelRequest(params=types.SetLevelRequestParams(level="emergency")), types.EmptyResult
        )
        assert "works in /home/alice" in str((await alice.messages.get()).data)
        replace_file(policy, "[tools\n")
        mistake = await alice.messages.get()
        # The text names no file of this machine.
        assert mistake.data == "the policy file has a mistake; the earlier policy stays in force"
        replace_file(policy, '[tools]\nglob = "allow"\n')
        await alice.changes.get()
        await bob.changes.get()
        for client in (first, second):  # an answer, behind everything that was sent before it
            await client.list_tools(cache_mode="bypass")
        assert alice.changes.empty() and bob.changes.empty() and bob.messages.empty()

    with serving("--workspace", str(workspace), "--policy", str(policy)) as server:
        asyncio.run(asyncio.wait_for(run(), SECONDS))
        _, said = server.stop()
    assert f"{policy}:1:" in said  # who started the server is told where the mistake is


def test_questions_of_one_program_at_the_same_time_cost_no_turns(workspace: Path, policy: Path) -> None:
    """Each program has several questions open at once; together they have more than calls may run."""
    policy.write_text('[tools]\nrun_program = "allow"\nread_file = "ask"\nlist = "allow"\n')
    source = (
        'import asyncio\nread = await asyncio.gather(*[atools.read_file(path="a.txt") for _ in range(8)])\nlen(read)\n'
    )

    async def person(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"approve": True})

    async def run(client: Client) -> str:
        for _ in range(6):
            done = await client.call_tool("run_program", {"source": source})
            assert not done.is_error, text_of(done)
        return text_of(await client.call_tool("list", {}))

    options = ("--workspace", str(workspace), "--policy", str(policy))
    assert "a.txt" in talk(run, *options, elicitation_callback=person)
