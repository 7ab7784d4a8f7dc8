"""Clients that nobody invited, and clients that misbehave: they lose nothing, leak nothing, and stop nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from tests.builtin.commands import OPEN_LINE, line_in, needs_a_sandbox
from tests.playground.conftest import make_workspace
from tests.playground.running import SECONDS, RunningPlayground, make_client, playground
from toolkit.playground.requests import HEADERS

T = TypeVar("T")
ADDRESSES = ("/api/session", "/api/tools", "/api/tools/read_file", "/api/audit", "/api/tokens", "/api/nothing")


@pytest.fixture(scope="module")
def open_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    needs_a_sandbox()
    with playground(make_workspace(tmp_path_factory.mktemp("open"))) as running:
        yield running


def ask(running: RunningPlayground, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    with make_client(running.address) as client:
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        return client.request(method, path, headers=given)


def says_nothing(running: RunningPlayground, response: httpx.Response) -> bool:
    return not any(word in response.text for word in (running.token, str(running.workspace), "read_file", "Traceback"))


def wait_for(look: Callable[[], T], is_there: Callable[[T], bool]) -> T:
    """Looks again until it is there. Only a mistake makes it give up."""
    deadline = time.monotonic() + SECONDS
    while not is_there(found := look()):
        assert time.monotonic() < deadline, found
    return found


WRONG_TOKENS = ("", "Bearer", "Bearer x", "Basic {token}", "Bearer {token}x", "Bearer {token} x", "{token}")


@pytest.mark.parametrize("path", ADDRESSES)
def test_without_the_token_there_is_nothing(open_house: RunningPlayground, path: str) -> None:
    given = [{}, *({"Authorization": value.format(token=open_house.token)} for value in WRONG_TOKENS)]
    for headers in given:
        for method in ("GET", "POST", "OPTIONS", "DELETE"):
            response = ask(open_house, path, method, **headers)
            assert response.status_code == 401 and says_nothing(open_house, response)
    for place in (f"{path}?token={open_house.token}", f"{path}#token={open_house.token}"):
        assert ask(open_house, place).status_code == 401
    twice = [("Authorization", "Bearer x"), ("Authorization", f"Bearer {open_house.token}")]
    with make_client(open_house.address, twice) as client:
        assert client.get(path).status_code == 401


@pytest.mark.each("path", "headers")
@pytest.mark.parametrize("path", ["/", "/main.js", *ADDRESSES])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
    ],
)
def test_foreign_pages_and_names_are_refused_even_with_the_token(
    open_house: RunningPlayground, path: str, headers: dict[str, str], status: int
) -> None:
    given = {key: value.format(port=open_house.port) for key, value in headers.items()}
    response = ask(open_house, path, **given, **open_house.headers)
    assert response.status_code == status and says_nothing(open_house, response)
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/style.css", "/main.js", "/api/tools", "/nowhere"])
def test_every_response_says_what_a_browser_may_do_with_it(open_house: RunningPlayground, path: str) -> None:
    for headers in ({}, open_house.headers, {"Origin": "https://evil.example"}):
        response = ask(open_house, path, **headers)
        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS


def test_the_page_holds_no_data_and_asks_nobody_else(open_house: RunningPlayground) -> None:
    from toolkit.playground.requests import page_files

    for path, (content, _) in page_files().items():
        response = ask(open_house, path)
        assert response.status_code == 200 and response.content == content
        text = content.decode()
        assert not [
            word for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "//cdn") if word in text
        ]
        assert "https://" not in text and (
            "http://" not in text or path == "/icon.svg"
        )  # the name of SVG is an address
    for outside in ("/../app.py", "/%2e%2e/app.py", "/page/index.html", "/__init__.py", "/index.html"):
        assert ask(open_house, outside, **open_house.headers).status_code == 404


BODIES: dict[str, tuple[bytes, str, int]] = {
    "no JSON": (b"{", "application/json", 400),
    "no object": (b"[]", "application/json", 400),
    "no text": (b'{"tool": 1, "arguments": "{}"}', "application/json", 400),
    "not UTF-8": (b'{"tool": "\xff"}', "application/json", 400),
    "very deep": (b"[" * 500_000, "application/json", 400),
    "a form": (b"tool=read_file", "application/x-www-form-urlencoded", 415),
    "plain text, as a foreign page may send it": (b'{"tool": "read_file", "arguments": "{}"}', "text/plain", 415),
    "too long": (b" " * (1024 * 1024 + 1), "application/json", 413),
    "an unknown tool": (b'{"tool": "../x", "arguments": "{}"}', "application/json", 404),
    "a tool with a lone surrogate": (b'{"tool": "\\ud800", "arguments": "{}"}', "application/json", 404),
}


@pytest.mark.each("path", "case")
@pytest.mark.parametrize("path", ["/api/explain", "/api/calls"])
@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_wrong_body_is_refused_in_a_sentence(
    open_house: RunningPlayground, path: str, case: str, chunked: bool
) -> None:
    body, kind, status = BODIES[case]
    content = iter([body[:100], body[100:]]) if chunked else body
    with open_house.client() as client:
        response = client.post(path, content=content, headers={"Content-Type": kind})
    assert response.status_code == status and len(response.json()["error"].split()) > 3
    assert says_nothing(open_house, response)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/calls/0123456789abcdef/cancel", 404),
        ("POST", "/api/calls/%00/cancel", 404),
        ("POST", "/api/approvals/0123456789abcdef", 404),
        ("GET", "/api/tools/no_such_tool", 404),
        ("GET", "/api/tools/%2e%2e%2fetc", 404),
        ("GET", "/api/calls", 405),
        ("DELETE", "/api/tools", 405),
        ("GET", "/api/", 404),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(
    open_house: RunningPlayground, method: str, path: str, status: int
) -> None:
    with open_house.client() as client:
        body = {"answer": "approve"} if method == "POST" else None
        response = client.request(method, path, json=body)
    assert response.status_code == status and len(response.json()["error"].split()) > 3
    assert says_nothing(open_house, response)


def test_a_client_that_goes_away_cancels_its_call(open_house: RunningPlayground) -> None:
    with line_in(open_house.workspace) as line:
        with open_house.call("bash", command=f"{OPEN_LINE} echo x >&9; sleep 31536000") as events:
            next(events)
            line.wait_for_words()
        line.wait_until_nobody_holds_it()
    (open_house.workspace / "line").unlink()
    last = wait_for(lambda: open_house.get("/api/audit")["calls"][-1], lambda call: call["outcome"] is not None)
    assert last["outcome"] == "TOOL_CANCELLED"


def test_too_many_calls_are_refused_and_end_with_their_clients(open_house: RunningPlayground) -> None:
    from contextlib import ExitStack

    with line_in(open_house.workspace) as line:
        with ExitStack() as clients:
            command = f"{OPEN_LINE} echo x >&9; sleep 31536000"
            running = [clients.enter_context(open_house.call("bash", command=command)) for _ in range(4)]
            assert {next(events)["event"] for events in running} == {"started"}
            line.wait_for_words()
            refused = open_house.post("/api/calls", {"tool": "bash", "arguments": "{}"})
            assert refused.status_code == 429 and refused.json()["error"].startswith("4 calls are running")
        line.wait_until_nobody_holds_it()
    (open_house.workspace / "line").unlink()


def test_a_reader_that_does_not_read_costs_no_memory_and_gets_the_end(open_house: RunningPlayground) -> None:
    """24 MB of output: what the client did not read in time is dropped and counted; the result arrives."""
    body = json.dumps(
        {"tool": "bash", "arguments": json.dumps({"command": "head -c 24000000 /dev/zero | tr '\\0' a | fold -w 99"})}
    )
    head = (
        f"POST /api/calls HTTP/1.1\r\nHost: 127.0.0.1:{open_house.port}\r\nAuthorization: Bearer {open_house.token}\r\n"
    )
    request = f"{head}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    before = len(open_house.get("/api/audit")["calls"])
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", open_house.port))
        client.sendall(request.encode())
        # Until the command has ended; nothing is read meanwhile.
        calls = wait_for(
            lambda: open_house.get("/api/audit")["calls"],
            lambda calls: len(calls) > before and calls[-1]["outcome"] is not None,
        )
        assert calls[-1]["outcome"] == "ok"
        received = b""
        while piece := client.recv(1 << 20):
            received += piece
    events = [json.loads(line) for line in received.split(b"\n") if line.startswith(b"{")]
    assert sum(event.get("dropped", 0) for event in events if event["event"] == "progress") > 0
    assert len(received) < 12_000_000
    assert (events[-1]["event"], events[-1]["error"]) == ("result", None)


def test_many_broken_connections_leave_no_descriptors(open_house: RunningPlayground) -> None:
    open_house.run("list", path=".")

    def be_rude() -> None:
        for piece in (
            b"",
            b"GET / HT",
            b"POST /api/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
            b"\x00\xff\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", open_house.port), SECONDS) as client:
                client.sendall(piece)
        with open_house.call("read_file", path="README.md") as events:
            next(events)

    be_rude()
    before = open_house.count_descriptors()
    for _ in range(20):
        be_rude()
    # Connections that were closed here are closed there when the server has noticed.
    wait_for(open_house.count_descriptors, lambda count: count <= before + 2)
    assert open_house.run("read_file", path="README.md")["error"] is None


def test_websockets_are_refused(open_house: RunningPlayground) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "x" * 22 + "==",
        "Sec-WebSocket-Version": "13",
    }
    assert ask(open_house, "/api/calls", **headers, **open_house.headers).status_code in (400, 405)


def test_the_log_of_a_temporary_playground_goes_with_it(tmp_path: Path) -> None:
    with playground(tmp_path) as running:
        log = Path(running.get("/api/session")["audit"])
        assert log.exists() and log.stat().st_mode & 0o077 == 0 and log.parent.stat().st_mode & 0o077 == 0
        assert running.stop() == 0
        assert not log.parent.exists()
