"""Clients that misbehave lose their own answers at most: the server goes on, and keeps nothing of them."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.forks import Fork
from tests.guard.process.test_ends import wait_for
from tests.serve.clients import INITIALIZE, SECONDS, Running, make_client, serving

pytestmark = pytest.mark.slow

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""What every request of the newest revision says of its client."""
NEWEST = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: "], ids=["nothing", "half a head"])
def test_connections_without_a_request_take_no_room(tmp_path: Path, sent: bytes) -> None:
    """A new one takes the place of the one that has waited for longest."""
    with ExitStack() as stack:
        server = stack.enter_context(serving("--workspace", str(tmp_path), "--preset", "read-only"))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (200, 200))
        address = urlsplit(server.url)
        assert address.hostname is not None
        half_open = []
        for _ in range(300):
            half_open.append(stack.enter_context(socket.create_connection((address.hostname, address.port), SECONDS)))
            half_open[-1].sendall(sent)
        assert server.open_session().status_code == 200
        assert is_ended(half_open[0])
        assert server.stop()[0] == 0


def is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


class Pipe:
    """A client that writes and reads lines, and nothing else."""

    def __init__(self, workspace: Path, preset: str) -> None:
        self.process = Fork("toolkit", "serve", "--workspace", str(workspace), "--preset", preset, stderr=False)
        self.send(INITIALIZE, INITIALIZED)
        assert self.read()["id"] == 0

    def send(self, *messages: Any) -> None:
        self.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def send_bytes(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next answer; notifications are passed over."""
        while "id" not in (message := json.loads(self.process.stdout.readline())) or "method" in message:
            pass
        answer: dict[str, Any] = message
        return answer

    def is_alive(self, number: int) -> bool:
        """Whether a plain call is answered."""
        self.send(call(number, "read_file", path="a.txt"))
        while (answer := self.read())["id"] != number:
            pass
        return "one" in str(answer["result"])

    def close(self) -> None:
        self.process.close()


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def cancel(number: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


@pytest.fixture
def pipe(workspace: Path) -> Iterator[Pipe]:
    made = Pipe(workspace, "full")
    yield made
    made.close()


def test_a_client_that_does_not_read_holds_its_calls_back_and_loses_none(pipe: Pipe, workspace: Path) -> None:
    """Far more answers than a pipe holds; they are read only after everything was sent."""
    (workspace / "large.txt").write_text(("x" * 79 + "\n") * 500)
    count = 200
    sender = threading.Thread(
        target=lambda: pipe.send(*(call(number, "read_file", path="large.txt") for number in range(1, count + 1)))
    )
    sender.start()
    answers = [pipe.read() for _ in range(count)]
    sender.join()
    assert {answer["id"] for answer in answers} == set(range(1, count + 1))
    assert all(answer["result"]["structuredContent"]["total_lines"] == 500 for answer in answers)


def test_more_calls_than_may_wait_are_answered_that_the_server_is_busy(pipe: Pipe, workspace: Path) -> None:
    (workspace / "go").write_text("")
    count = 340
    waiting = "while [ -e go ]; do sleep 0.1; done; echo over"
    pipe.send(*(call(number, "bash", command=waiting) for number in range(1, count + 1)))
    refused = [pipe.read() for _ in range(count - 32 - 256)]
    assert all(answer["result"]["isError"] for answer in refused)
    assert {answer["result"]["content"][0]["text"] for answer in refused} == {
        "the server is busy: 256 calls wait already; call the tool again later"
    }
    # The rest is not run: who cancels gets its turn back.
    pipe.send(*(cancel(number) for number in range(33, count + 1)))
    (workspace / "go").unlink()
    done = 0
    while done < 32:
        done += "over" in str(pipe.read().get("result", ""))
    assert pipe.is_alive(count + 1)


def test_cancelled_twice_and_unknown_ids_change_nothing(pipe: Pipe) -> None:
    pipe.send(call(1, "bash", command="sleep 4321.5", timeout_ms=600_000))
    pipe.send(*[cancel(1)] * 3, cancel(77), cancel("x"), cancel(None))
    pipe.send(
        {"jsonrpc": "2.0", "id": 99, "result": {}}, {"jsonrpc": "2.0", "id": "y", "error": {"code": 1, "message": ""}}
    )
    pipe.send({"jsonrpc": "2.0", "method": "notifications/no_such_thing", "params": {"a": 1}})
    assert pipe.is_alive(2)
    wait_for(lambda: not _running("sleep 4321.5"), "the command to end")


@pytest.mark.sample
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not JSON",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "' + b"x" * 20_000_000 + b'"}}',
        b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": 7}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read_file", "arguments": [1]}}',
        b'{"jsonrpc": "2.0", "id": 8, "method": "no/such/method"}',
        b'{"jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": {"uri": "toolkit-output:///../../etc/passwd"}}',
    ],
    ids=["empty", "text", "bytes", "deep", "large", "params", "arguments", "method", "resource"],
)  # fmt: skip
def test_what_is_not_a_message_is_survived(workspace: Path, line: bytes) -> None:
    pipe = Pipe(workspace, "read-only")
    try:
        pipe.send_bytes(line + b"\n")
        assert pipe.is_alive(1000)
    finally:
        pipe.close()


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.whole)])
def test_sessions_that_come_and_go_leave_nothing(workspace: Path, count: int) -> None:
    with (
        serving("--workspace", str(workspace), "--preset", "full") as server,
        make_client() as client,
    ):
        _visit(server, client)
        before = _descriptors(server)
        for _ in range(count):
            _visit(server, client)
        # One toolkit for each session that stays open, and no more.
        assert _descriptors(server) <= before + 16 * 4
        assert not [pid for pid in _children(server.process.pid) if "fork_server" in _command(pid)]


def _visit(server: Running, client: httpx.Client) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    opened = client.post(server.url, json=INITIALIZE, headers=headers)
    assert opened.status_code == 200
    headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
    assert client.post(server.url, json=INITIALIZED, headers=headers).status_code == 202
    answer = client.post(server.url, json=call(1, "read_file", path="a.txt"), headers=headers)
    assert "one" in answer.text
    assert client.delete(server.url, headers=headers).status_code == 200


def test_a_log_that_nobody_reads_stops_nobody(workspace: Path, policy: Path) -> None:
    """Each forged state is a line on standard error: far more than this pipe holds."""
    with (
        serving("--workspace", str(workspace), "--policy", str(policy)) as server,
        make_client() as client,
    ):
        message = call(1, "read_file", path="a.txt")
        message["params"] |= {"_meta": META, "requestState": "forged" * 10}
        headers = {**NEWEST, "Mcp-Name": "read_file"}
        fcntl.fcntl(server.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(200):
            refused = client.post(server.url, json=message, headers=headers)
            assert "requestState" in refused.text
        del message["params"]["requestState"]
        assert "one" in client.post(server.url, json=message, headers=headers).text
        code, said = server.stop()
        assert code == 0 and "requestState rejected" in said and "stopped" in said


def test_a_client_of_the_newest_revision_that_goes_away_ends_its_call(workspace: Path) -> None:
    message = call(1, "bash", command="echo begun; sleep 4321.125", timeout_ms=600_000)
    message["params"]["_meta"] = {**META, "progressToken": 1}
    headers = {**NEWEST, "Mcp-Name": "bash"}
    with serving("--workspace", str(workspace), "--preset", "full") as server:
        with httpx.stream(
            "POST", server.url, json=message, headers=headers, trust_env=False, timeout=SECONDS
        ) as answer:
            lines = answer.iter_lines()  # dropping it would close the connection
            assert "notifications/progress" in next(line for line in lines if '"begun' in line)
            wait_for(lambda: _running("sleep 4321.125"), "the command to begin")
        wait_for(lambda: not _running("sleep 4321.125"), "the command to end")


def _running(command: str) -> bool:
    wanted = command.replace(" ", "\0").encode() + b"\0"
    return any(_read(file) == wanted for file in Path("/proc").glob("[0-9]*/cmdline"))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _descriptors(server: Running) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def _children(process: int) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout
    return [int(pid) for pid in listed.split()]


def _command(process: int) -> str:
    return _read(Path(f"/proc/{process}/cmdline")).decode(errors="replace")
