"""``ask`` over MCP: the person at the client decides, in both revisions of the protocol that ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.serve.clients import ERAS, Running, serving, text_of
from tests.serve.conftest import fill

pytestmark = pytest.mark.slow

WRITE = ("write_file", {"path": "b.txt", "content": "new\n"})


class Person:
    """Answers every question in the same way, and remembers what was shown."""

    def __init__(self, action: Any = "accept", content: Mapping[str, Any] | None = None) -> None:
        self.shown: list[str] = []
        self._answer = types.ElicitResult(action=action, content=None if content is None else dict(content))

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.shown.append(params.message)
        return self._answer


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asked")


@pytest.fixture
def workspace(folder: Path) -> Path:
    """The folder of the shared server, with one file in it."""
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Reading and programs are allowed, writing and commands are asked about."""
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    asked = "".join(f'{name} = "ask"\n' for name in ("write_file", "edit", "exec_command"))
    policy.write_text(f'[tools]\nread_file = "allow"\nrun_program = "allow"\n{asked}')
    with serving("--workspace", str(folder), "--policy", str(policy)) as running:
        yield running


def call(server: Running, person: Person | None, era: Any, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """The texts of the answers; failed ones begin with ``!``."""

    async def run(client: Client) -> list[str]:
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [("!" if result.is_error else "") + text_of(result) for result in results]

    return server.talk(run, mode=era, elicitation_callback=person)


def test_an_approved_call_runs_once_and_the_next_one_is_asked_about_again(
    server: Running, workspace: Path, era: Any
) -> None:
    person = Person(content={"approve": True})
    again = ("edit", {"path": "b.txt", "old_string": "new", "new_string": "newer"})
    answers = call(server, person, era, WRITE, again)
    assert not any(answer.startswith("!") for answer in answers), answers
    assert (workspace / "b.txt").read_text() == "newer\n" and len(person.shown) == 2


def test_a_person_sees_what_would_really_happen(server: Running, workspace: Path, era: Any) -> None:
    person = Person("decline")
    edit = ("edit", {"path": "a.txt", "old_string": "two", "new_string": "2\u202e"})
    command = ("exec_command", {"command": ["git", "push", "--force", "a b"]})
    call(server, person, era, edit, command)
    first, second = person.shown
    assert first.startswith("Run edit?\nAsked because ") and "Writes: a.txt" in first
    assert "-two\n+2\\u202e" in first  # what could hide something is shown as an escape
    assert "Command: git push --force 'a b'" in second and "In the folder: ." in second


def test_a_person_reads_that_something_is_not_shown(server: Running, workspace: Path, era: Any) -> None:
    person = Person("decline")
    lines = "".join(f"line {number}\n" for number in range(10_000))
    call(server, person, era, ("write_file", {"path": "b.txt", "content": lines}))
    (shown,) = person.shown
    assert "line 9999" not in shown and shown.endswith(" more characters are not shown]"), shown[-200:]


@pytest.mark.parametrize(
    ("person", "says"),
    [
        (Person("decline"), "was not approved: the person declined"),
        (Person("cancel"), "was not approved: the person dismissed the question"),
        (Person(content={"approve": False, "reason": "not on a Friday"}), "was not approved: not on a Friday"),
        (Person(content={}), "was not approved: the person declined"),
        (Person(content={"approve": "true"}), "was not approved: the person declined"),
        (None, "this MCP client cannot ask one (it has no form elicitation)"),
    ],
)
def test_without_a_clear_yes_nothing_happens_and_the_model_reads_why(
    server: Running, workspace: Path, era: Any, person: Person | None, says: str
) -> None:
    [answer] = call(server, person, era, WRITE)
    assert answer.startswith("!TOOL_NOT_ALLOWED: ") and says in answer
    assert not (workspace / "b.txt").exists()


def test_a_file_that_changes_while_a_person_thinks_voids_the_approval(
    server: Running, workspace: Path, era: Any
) -> None:
    class Slow(Person):
        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            if not self.shown:
                (workspace / "a.txt").write_text("two and more\n")
            return await super().__call__(context, params)

    person = Slow(content={"approve": True})
    edit = ("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})
    [answer] = call(server, person, era, edit)
    if era == "legacy":
        assert answer.startswith("!TOOL_NOT_ALLOWED: ") and "changed while the call waited for approval" in answer
        assert (workspace / "a.txt").read_text() == "two and more\n"
    else:  # the answer was about something else, so the question comes again, with the new diff
        assert len(person.shown) == 2 and "+2 and more" in person.shown[1]
        assert (workspace / "a.txt").read_text() == "2 and more\n"


def test_a_cancelled_call_is_not_run_if_the_person_says_yes_later(server: Running, workspace: Path) -> None:
    asked, released = asyncio.Event(), asyncio.Event()

    async def person(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await released.wait()
        return types.ElicitResult(action="accept", content={"approve": True})

    async def run(client: Client) -> str:
        waiting = asyncio.create_task(client.call_tool(*WRITE))
        await asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        released.set()
        return text_of(await client.call_tool("read_file", {"path": "a.txt"}))

    assert "one" in server.talk(run, elicitation_callback=person)
    assert not (workspace / "b.txt").exists()


class Rounds:
    """The rounds of a call as a program sees them that answers by itself."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, name: str, arguments: dict[str, Any]) -> types.InputRequiredResult:
        result = await self._client.session.call_tool(name, arguments, allow_input_required=True)
        assert isinstance(result, types.InputRequiredResult)
        return result

    async def answer(self, name: str, arguments: dict[str, Any], state: str | None) -> Any:
        yes = types.ElicitResult(action="accept", content={"approve": True})
        return await self._client.session.call_tool(
            name, arguments, input_responses={"approval": yes}, request_state=state, allow_input_required=True
        )


async def nobody(context: Any, params: Any) -> types.ElicitResult:
    raise AssertionError("the rounds are driven by hand")


def in_rounds(server: Running, scenario: Any) -> None:
    async def run(client: Client) -> None:
        await scenario(Rounds(client))

    server.talk(run, mode="2026-07-28", elicitation_callback=nobody)


def test_an_answer_is_used_once(server: Running, workspace: Path) -> None:
    async def scenario(rounds: Rounds) -> None:
        asked = await rounds.ask(*WRITE)
        done = await rounds.answer(*WRITE, asked.request_state)
        assert isinstance(done, types.CallToolResult) and not done.is_error
        (workspace / "b.txt").unlink()
        again = await rounds.answer(*WRITE, asked.request_state)
        assert isinstance(again, types.InputRequiredResult)
        assert not (workspace / "b.txt").exists()

    in_rounds(server, scenario)


def test_an_answer_holds_for_the_call_it_was_given_to(server: Running, workspace: Path) -> None:
    other = ("write_file", {"path": "c.txt", "content": "new\n"})

    async def scenario(rounds: Rounds) -> None:
        asked = await rounds.ask(*WRITE)
        with pytest.raises(MCPError, match="requestState"):
            await rounds.answer(*other, asked.request_state)
        with pytest.raises(MCPError, match="requestState"):
            await rounds.answer(*WRITE, f"{asked.request_state}x")
        without = await rounds.answer(*WRITE, None)
        assert isinstance(without, types.InputRequiredResult)

    in_rounds(server, scenario)
    assert sorted(file.name for file in workspace.iterdir()) == ["a.txt"]


def test_calls_inside_a_program_are_asked_about_where_the_protocol_can(
    server: Running, workspace: Path, era: Any
) -> None:
    person = Person(content={"approve": True})
    source = 'tools.write_file(path="b.txt", content="new\\n").path'
    [answer] = call(server, person, era, ("run_program", {"source": source}))
    if era == "legacy":
        assert (workspace / "b.txt").read_text() == "new\n" and len(person.shown) == 1
    else:  # running the program again would repeat what it has done so far
        assert "cannot be approved over this revision of the protocol" in answer
        assert not (workspace / "b.txt").exists() and not person.shown
