"""Several processes of one server over one Redis: a client may talk to any of them, and loses at most the call under way."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from tests.guard.process.test_ends import wait_for
from tests.serve.clients import ERAS, Running, serving, text_of
from tests.serve.test_approvals import Person, Rounds, in_rounds
from tests.stores.redis_server import OwnRedis

pytestmark = pytest.mark.slow

MODERN: Any = ERAS[-1]


@pytest.fixture(scope="module")
def redis() -> Iterator[OwnRedis]:
    server = OwnRedis()
    yield server
    server.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shared")
    (made / "long.txt").write_text("".join(f"line {number}\n" for number in range(20_000)))
    return made


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("secret") / "secret"
    file.write_text(secrets.token_urlsafe(32))
    return file


@pytest.fixture(scope="module")
def options(redis: OwnRedis, folder: Path, secret: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    allowed = ("read_file", "exec_command", "todowrite", "todoread", "tool_output_cache")
    policy.write_text("[tools]\n" + "".join(f'{name} = "allow"\n' for name in allowed) + 'write_file = "ask"\n')
    return ["--workspace", str(folder), "--policy", str(policy), "--redis", redis.url, "--secret-file", str(secret)]


@pytest.fixture(scope="module")
def pair(options: list[str]) -> Iterator[tuple[Running, Running]]:
    with serving(*options) as one, serving(*options) as other:
        yield one, other


def call(server: Running, name: str, arguments: dict[str, Any], era: Any = MODERN, person: Any = None) -> Any:
    async def run(client: Client) -> Any:
        return await client.call_tool(name, arguments)

    return server.talk(run, mode=era, elicitation_callback=person)


@pytest.mark.parametrize("era", ERAS)
def test_what_one_process_keeps_any_other_finds(pair: tuple[Running, Running], era: Any) -> None:
    one, other = pair
    todo = {"id": "1", "content": "ship it", "status": "pending"}
    assert not call(one, "todowrite", {"todos": [todo]}, era).is_error
    assert "ship it" in text_of(call(other, "todoread", {}, era))
    long = call(one, "exec_command", {"command": ["cat", "long.txt"]}, era)
    [link] = [block for block in long.content if isinstance(block, types.ResourceLink)]

    async def read(client: Client) -> str:
        return "".join(part.text for part in (await client.read_resource(link.uri)).contents if hasattr(part, "text"))

    assert "line 1\n" in other.talk(read, mode=era)


def test_a_question_of_one_process_is_answered_at_another_and_once(pair: tuple[Running, Running], folder: Path) -> None:
    one, other = pair
    write = ("write_file", {"path": "asked.txt", "content": "yes"})
    states: list[Any] = []

    async def ask(rounds: Rounds) -> None:
        states.append((await rounds.ask(*write)).request_state)

    async def answer(rounds: Rounds) -> None:
        done = await rounds.answer(*write, states[0])
        assert isinstance(done, types.CallToolResult) and not done.is_error, done

    async def answer_again(rounds: Rounds) -> None:
        assert isinstance(await rounds.answer(*write, states[0]), types.InputRequiredResult)

    in_rounds(one, ask)
    in_rounds(other, answer)
    assert (folder / "asked.txt").read_text() == "yes"
    (folder / "asked.txt").unlink()
    for server in pair:
        in_rounds(server, answer_again)
    assert not (folder / "asked.txt").exists()


def test_a_process_that_is_killed_costs_the_call_under_way_and_nothing_else(
    options: list[str], pair: tuple[Running, Running], folder: Path
) -> None:
    raised: list[BaseException] = []
    with serving(*options) as doomed:

        def wait() -> None:
            try:
                call(doomed, "exec_command", {"command": ["sh", "-c", "touch began; sleep 1000"]})
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_for((folder / "began").exists, "the command never began")
        os.kill(doomed.process.pid, signal.SIGKILL)
        thread.join()
    assert raised  # the client is told that there is no answer
    assert "ship" not in text_of(call(pair[0], "read_file", {"path": "long.txt", "max_lines": 1}))


def test_a_redis_that_is_gone_fails_what_needs_it_and_says_so(options: list[str], secret: Path, folder: Path) -> None:
    own = OwnRedis()
    try:
        words = [own.url if word.startswith("unix://") else word for word in options]
        with serving(*words) as server:
            own.kill()
            failed = call(server, "todoread", {})
            assert failed.is_error and "TOOL_FAILED" in text_of(failed)
            cut = call(server, "exec_command", {"command": ["cat", "long.txt"]})
            assert not cut.is_error and "could not be stored" in text_of(cut)
            asked = call(
                server, "write_file", {"path": "x", "content": "x"}, person=Person("accept", {"approve": True})
            )
            assert asked.is_error and "TOOL_FAILED" in text_of(asked)
    finally:
        own.close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--redis", "redis://127.0.0.1:1"], "add --secret-file FILE"),
        (["--secret-file", "/nonexistent"], "add --redis URL"),
        (["--redis", "redis://127.0.0.1:1", "--secret-file", "/nonexistent"], "cannot be read"),
    ],
)
def test_half_of_it_is_refused_with_the_way_out(folder: Path, given: list[str], words: str) -> None:
    with pytest.raises(AssertionError, match=words), serving("--workspace", str(folder), "--preset", "edit", *given):
        pass
