"""The server over HTTP: who may connect, separate sessions, limits, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.forks import relayed
from tests.projects import DOWNSTREAM, REPOSITORY
from tests.serve.clients import ERAS, INITIALIZE, SECONDS, Running, make_client, serve_command, serving, talk, text_of

pytestmark = pytest.mark.slow

TOKEN = "0123456789abcdef0123456789abcdef"
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("http")
    (made / "a.txt").write_text("one\ntwo\n")
    return made


@pytest.fixture(scope="module")
def plain(folder: Path) -> Iterator[Running]:
    """A server on the loopback without a token."""
    with serving("--workspace", str(folder), "--preset", "full") as server:
        yield server


@pytest.fixture(scope="module")
def locked(folder: Path) -> Iterator[Running]:
    """A server with a token."""
    with serving("--workspace", str(folder), "--preset", "read-only", TOOLKIT_SERVE_TOKEN=TOKEN) as server:
        yield server


@pytest.mark.parametrize("mode", ERAS)
def test_clients_of_both_kinds_list_and_call(plain: Running, mode: Any) -> None:
    async def run(client: Client) -> tuple[int, str]:
        tools = (await client.list_tools()).tools
        return len(tools), text_of(await client.call_tool("read_file", {"path": "a.txt"}))

    number, text = plain.talk(run, mode=mode)
    assert number == 19 and "one" in text


def test_it_says_where_it_is_and_what_is_allowed(plain: Running, locked: Running, folder: Path) -> None:
    assert plain.announced.startswith(f"serving 19 tools in {folder} at http://127.0.0.1:")
    assert "/mcp, without a token; preset full: tools may read and change the workspace" in plain.announced
    assert "/mcp, with a token; preset read-only" in locked.announced and TOKEN not in locked.announced


REFUSED = {
    "a foreign page": ({"Origin": "https://evil.example"}, 403, "other web pages"),
    "a sandboxed page": ({"Origin": "null"}, 403, "other web pages"),
    "a page on another port": ({"Origin": "http://127.0.0.1:1"}, 403, "other web pages"),
    "a name that resolves to this machine": (
        {"Host": "evil.example"},
        421,
        "another server than this one; give the names of this server with --allow-host",
    ),
    "the right name on another port": ({"Host": "127.0.0.1:1"}, 421, "another server"),
    "no port": ({"Host": "127.0.0.1"}, 421, "another server"),
}


@pytest.mark.parametrize("row", REFUSED)
def test_requests_of_foreign_pages_are_refused(plain: Running, row: str) -> None:
    headers, status, says = REFUSED[row]
    answer = plain.open_session(**headers)
    assert answer.status_code == status and says in answer.text


def test_pages_of_this_machine_on_this_port_are_let_in(plain: Running) -> None:
    origin = plain.url.removesuffix("/mcp")
    assert plain.open_session(Origin=origin).status_code == 200
    port = origin.rpartition(":")[2]
    assert plain.open_session(Host=f"localhost:{port}").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}0"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer"},
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/", "/other"])
def test_without_the_token_nothing_is_answered(locked: Running, sent: dict[str, str], path: str) -> None:
    url = locked.url.removesuffix("/mcp") + path
    with make_client() as client:
        answer = client.post(url, json=INITIALIZE, headers={"Accept": "application/json, text/event-stream", **sent})
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert answer.text == "the token is missing or wrong: send `Authorization: Bearer TOKEN`"


def test_with_the_token_a_session_opens(locked: Running) -> None:
    assert locked.open_session(Authorization=f"Bearer {TOKEN}").status_code == 200
    assert locked.open_session(Authorization=f"bearer {TOKEN}").status_code == 200


def test_what_one_session_keeps_another_cannot_read(plain: Running) -> None:
    async def keep(client: Client) -> str:
        result = await client.call_tool("bash", {"command": "seq 1 100000"})
        await client.call_tool("todowrite", {"todos": [{"content": "mine", "status": "pending"}]})
        return next(block.uri for block in result.content if isinstance(block, types.ResourceLink))

    async def both(first: Client) -> None:
        uri = await keep(first)

        async def look(second: Client) -> None:
            assert (await second.list_resources()).resources == []
            with pytest.raises(MCPError):
                await second.read_resource(uri)
            assert "mine" not in text_of(await second.call_tool("todoread", {}))

        async with Client(plain.url, mode="legacy") as second:
            await look(second)
        assert (await first.read_resource(uri)).contents
        assert "mine" in text_of(await first.call_tool("todoread", {}))

    plain.talk(both)


def test_more_sessions_than_toolkits_that_stay_open_lose_nothing(plain: Running) -> None:
    """Each session writes a todo; then each reads its own, though its toolkit was closed meanwhile."""

    async def run(_: Client) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(24):
                group.create_task(one(number))

    async def one(number: int) -> None:
        async with Client(plain.url, mode="legacy") as client:
            todo = {"content": f"todo of {number}", "status": "pending"}
            await client.call_tool("todowrite", {"todos": [todo]})
            await arrived(number)
            assert f"todo of {number}" in text_of(await client.call_tool("todoread", {}))

    waiting: set[int] = set()
    everybody = asyncio.Event()

    async def arrived(number: int) -> None:
        waiting.add(number)
        if len(waiting) == 24:
            everybody.set()
        await everybody.wait()

    plain.talk(run)


def test_sessions_are_bounded_and_room_comes_back(folder: Path) -> None:
    with serving("--workspace", str(folder), "--preset", "read-only") as server:
        opened = [server.open_session() for _ in range(100)]
        assert {answer.status_code for answer in opened} == {200}
        assert server.open_session().status_code == 503
        with make_client() as client:
            session = {"Mcp-Session-Id": opened[0].headers["mcp-session-id"]}
            assert client.delete(server.url, headers=session).status_code == 200
        assert server.open_session().status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read(plain: Running) -> None:
    answer = plain.post(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (5 * 1024 * 1024) + b'"}')
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"not JSON", 400),
        (b"[]", 400),
        (b'{"jsonrpc": "2.0"}', 400),
        (b"[" * 100_000, 400),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode(), 400),
    ],
)
def test_what_is_not_a_request_is_refused(plain: Running, body: bytes, status: int) -> None:
    assert plain.post(body).status_code == status


def test_an_unknown_session_does_not_exist(plain: Running) -> None:
    assert plain.post(DISCOVER, **{"Mcp-Session-Id": "0" * 32}).status_code == 404


def test_on_every_address_it_says_how_names_are_given(folder: Path) -> None:
    options = ("--workspace", str(folder), "--preset", "read-only")
    with serving(*options, address="0.0.0.0:0", TOOLKIT_SERVE_TOKEN=TOKEN) as server:
        assert server.open_session(Authorization=f"Bearer {TOKEN}").status_code == 200
        _, said = server.stop()
        assert "give it with --allow-host NAME:" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.whole)])
def test_a_stop_ends_calls_and_commands_and_says_so(folder: Path, number: int) -> None:
    with serving("--workspace", str(folder), "--preset", "full") as server:

        async def run(client: Client) -> None:
            started = asyncio.Event()

            async def note(progress: float, total: float | None, message: str | None) -> None:
                started.set()

            arguments = {"command": "echo $PPID; echo begun; sleep 4321.75", "timeout_ms": 600000}
            call = asyncio.create_task(client.call_tool("bash", arguments, progress_callback=note))
            begun = asyncio.create_task(started.wait())
            await asyncio.wait({begun, call}, return_when=asyncio.FIRST_COMPLETED)
            assert begun.done(), call.result()
            server.process.send_signal(number)
            with pytest.raises(MCPError):
                await call
            begun.cancel()

        with suppress(BaseExceptionGroup):  # the client says in its own way that the server has gone
            server.talk(run)
        code, said = server.wait()
        assert code == 0 and said.endswith("stopped\n"), said
        assert not _commands_of(server.process.pid)


def _commands_of(process: int) -> list[int]:
    """Processes that the server has left behind."""
    listed = subprocess.run(["pgrep", "-f", "sleep 4321.75"], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in listed if int(pid) != process]


WRONG = {
    "beyond the loopback without a token": (
        ["--http", "0.0.0.0:0"],
        "can be reached from other machines, so a token is needed",
    ),
    "a token that can be guessed": (
        ["--http", "127.0.0.1:0", "--token-file", "{token}"],
        "at least 16 printable ASCII characters",
    ),
    "a token file that is missing": (
        ["--http", "127.0.0.1:0", "--token-file", "{none}"],
        "cannot be read: No such file or directory",
    ),
    "a token that tools can read": (
        ["--http", "127.0.0.1:0", "--token-file", "{inside}"],
        "is inside the workspace, where tools can read it; move it out",
    ),
    "not an address": (["--http", "8123"], "'8123' is not an address; write HOST:PORT, such as 127.0.0.1:8123"),
    "a port that is too large": (["--http", "127.0.0.1:99999"], "is not an address"),
    "a token without HTTP": (["--token-file", "{token}"], "are for HTTP; add --http HOST:PORT"),
}


@pytest.mark.parametrize("row", WRONG)
def test_a_wrong_set_up_stops_before_anything_is_served(tmp_path: Path, folder: Path, row: str) -> None:
    options, says = WRONG[row]
    (tmp_path / "token").write_text("short")
    places = {"token": tmp_path / "token", "none": tmp_path / "none", "inside": folder / "a.txt"}
    given = [option.format(**places) for option in options]
    command = relayed("toolkit", "serve", "--workspace", str(folder), "--preset", "edit", *given)
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr


@pytest.mark.sample
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "nothing is allowed yet: choose --preset read-only, edit or full, or give --policy FILE"),
        (["--preset", "edit", "--policy", "p.toml"], "choose one of --preset and --policy"),
        (["--preset", "everything"], "everything"),
        (["--preset", "edit", "--workspace", "/no/such/folder"], "the workspace '/no/such/folder' is not a folder"),
        (
            ["--policy", "/no/such/policy.toml"],
            "/no/such/policy.toml: the policy cannot be read: No such file or directory",
        ),
        (["--preset", "edit", "--package", "no_such_package"], "'no_such_package' is not a generated package"),
    ],
)
def test_wrong_options_are_answered_in_words(tmp_path: Path, options: list[str], says: str) -> None:
    command = relayed("toolkit", "serve", *options)
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr


def test_whoever_serves_a_project_in_its_own_workspace_is_warned(tmp_path: Path) -> None:
    """Tools may write there what code of the project imports later."""
    project = shutil.copytree(DOWNSTREAM, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    command = serve_command("--workspace", ".", "--preset", "edit", "--package", "acme.generated")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0 and f"tools may write in {project}, which is on sys.path" in done.stderr


def test_a_server_over_stdio_ends_with_its_client(folder: Path) -> None:
    process = subprocess.Popen(
        serve_command("--workspace", str(folder), "--preset", "read-only"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    out, said = process.communicate(json.dumps(INITIALIZE).encode() + b"\n", timeout=SECONDS)
    assert (
        process.returncode == 0 and json.loads(out.splitlines()[0])["result"]["serverInfo"]["name"] == "typed-toolkit"
    )
    assert said.startswith(b"serving ") and b"Traceback" not in said


def test_what_a_handler_prints_does_not_disturb_the_protocol(folder: Path) -> None:
    async def run(client: Client) -> str:
        return text_of(await client.call_tool("bash", {"command": "echo to stdout; echo to stderr >&2"}))

    assert "to stdout" in talk(run, "--workspace", str(folder), "--preset", "full")
