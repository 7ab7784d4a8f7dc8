"""The proxy of the guarded network: what a hostile command sends to it, and what ordinary programs do.

Each attack tries to reach a server inside. A control shows where the same bytes, or the same host, lead without the rules.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import tracemalloc
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import pytest

from tests.guard.proxied import (
    GOOD,
    INSIDE,
    NAMES,
    OK,
    Origin,
    ask,
    network,
    proxy_threads,
    read_all,
    read_head,
    running_origin,
    running_proxy,
)
from toolkit.errors import ToolNotAllowed
from toolkit.guard import Network
from toolkit.guard.network.proxy import MAX_CONNECTIONS, UrlJudge

EVERYTHING = {"allow_hosts": None, "allow_addresses": ["127.0.0.0/8", "::/0"]}


@pytest.fixture
def good() -> Iterator[Origin]:
    with running_origin() as origin:
        yield origin


@pytest.fixture
def inside() -> Iterator[Origin]:
    with running_origin(INSIDE) as origin:
        yield origin


@pytest.fixture
def port() -> Iterator[int]:
    with running_proxy(network()) as (_, port):
        yield port


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


# --- attacks


@dataclass(frozen=True)
class Attack:
    """``text`` is sent to the proxy, with the ports of both servers filled in. ``reaches``: how its control gets inside.

    ``rules``: the same bytes, through a proxy that permits everything. Otherwise it is the host that a plain program
    connects to for this spelling.
    """

    name: str
    text: str
    status: int
    reaches: str = ""

    def bytes(self, good: Origin, inside: Origin) -> bytes:
        text = self.text.replace("GOODPORT", str(good.port)).replace("PORT", str(inside.port))
        if not text.endswith("\r\n\r\n"):
            text += "\r\n\r\n"
        if self.text.startswith("CONNECT"):
            text += "GET / HTTP/1.1\r\n\r\n"  # goes into the tunnel, if there is one
        return text.encode("latin-1")


ATTACKS = [
    Attack("a host that is not allowed", "GET http://evil.example:PORT/ HTTP/1.1", 403, "rules"),
    Attack("a tunnel to a host that is not allowed", "CONNECT evil.example:PORT HTTP/1.1", 403, "rules"),
    Attack("an address inside", "GET http://127.0.0.2:PORT/ HTTP/1.1", 403, "rules"),
    Attack("a tunnel to an address inside", "CONNECT 127.0.0.2:PORT HTTP/1.1", 403, "rules"),
    Attack("an allowed name of an address inside", "GET http://rebound.example:PORT/ HTTP/1.1", 403, "rules"),
    Attack("a tunnel to such a name", "CONNECT rebound.example:PORT HTTP/1.1", 403, "rules"),
    Attack("a mapped address", "GET http://[::ffff:127.0.0.2]:PORT/ HTTP/1.1", 403, "rules"),
    Attack("a tunnel to a mapped address", "CONNECT [::ffff:7f00:2]:PORT HTTP/1.1", 403, "rules"),
    Attack("a short address", "GET http://127.2:PORT/ HTTP/1.1", 403, "127.2"),
    Attack("a number as address", "GET http://2130706434:PORT/ HTTP/1.1", 403, "2130706434"),
    Attack("hexadecimal", "CONNECT 0x7f000002:PORT HTTP/1.1", 403, "0x7f000002"),
    Attack("octal", "CONNECT 0177.0.0.2:PORT HTTP/1.1", 403, "0177.0.0.2"),
    Attack("a zone", "CONNECT [::ffff:127.0.0.2%25lo]:PORT HTTP/1.1", 403),
    Attack("a user name that looks like the host", "GET http://good.example@127.0.0.2:PORT/ HTTP/1.1", 400, "127.0.0.2"),
    Attack("a password before the host", "GET http://good.example:80@127.0.0.2:PORT/ HTTP/1.1", 400, "127.0.0.2"),
    Attack("a user name in a tunnel", "CONNECT good.example@127.0.0.2:PORT HTTP/1.1", 400, "127.0.0.2"),
    Attack("a backslash before the host", "GET http://good.example\\@127.0.0.2:PORT/ HTTP/1.1", 400, "127.0.0.2"),
    Attack("a path in a tunnel", "CONNECT good.example/@127.0.0.2:PORT HTTP/1.1", 400, "127.0.0.2"),
    Attack("a fragment in a tunnel", "CONNECT 127.0.0.2#good.example:PORT HTTP/1.1", 400),
    Attack("a NUL in the host", "GET http://good.example\0.127.0.0.2:PORT/ HTTP/1.1", 400),
    Attack("a NUL in a tunnel", "CONNECT 127.0.0.2\0good.example:PORT HTTP/1.1", 400),
    Attack("a tab in the first line", "GET http://good.example/\thttp://127.0.0.2:PORT/ HTTP/1.1", 400),
    Attack("two URLs", "GET http://good.example/ http://127.0.0.2:PORT/ HTTP/1.1", 400),
    Attack("a letter that becomes another", "CONNECT good.example\xad.evil.example:PORT HTTP/1.1", 400),
    Attack("an upgrade to another protocol", "GET ftp://127.0.0.2:PORT/ HTTP/1.1", 501, "127.0.0.2"),
]  # fmt: skip


def title(row: Attack) -> str:
    return row.name


@pytest.mark.every_row
@pytest.mark.parametrize("row", ATTACKS, ids=title)
def test_nothing_inside_is_reached(row: Attack, port: int, good: Origin, inside: Origin) -> None:
    answer = ask(port, row.bytes(good, inside))

    assert status(answer) == row.status, answer
    assert inside.connections == good.connections == 0
    if row.reaches == "rules":
        names = {**NAMES, "evil.example": [INSIDE]}
        with running_proxy(network(names=names, **EVERYTHING)) as (_, open_port):  # type: ignore[arg-type]
            assert ask(open_port, row.bytes(good, inside)).endswith(b"five.")
    elif row.reaches:
        with socket.create_connection((row.reaches, inside.port)):
            pass


SMUGGLED = "GET http://127.0.0.2:PORT/ HTTP/1.1\r\n\r\n"
REQUEST = "GET http://good.example:GOODPORT/a HTTP/1.1\r\n"
HIDDEN = [
    Attack("a second request behind the first", f"{REQUEST}\r\n{SMUGGLED}", 200),
    Attack("a second request behind a body", f"POST http://good.example:GOODPORT/a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc{SMUGGLED}", 200),
    Attack("another host in the header", f"{REQUEST}Host: 127.0.0.2:PORT\r\n\r\n", 200),
    Attack("two hosts in the header", f"{REQUEST}Host: good.example\r\nHost: 127.0.0.2:PORT\r\n\r\n", 200),
    Attack("line breaks in the path", "GET http://good.example:GOODPORT/%0d%0aHost:%20127.0.0.2 HTTP/1.1\r\n\r\n", 200),
    Attack("a bare line feed", f"{REQUEST}X: a\n{SMUGGLED}", 400),
    Attack("a bare carriage return", f"{REQUEST}X: a\r{SMUGGLED}", 400),
    Attack("a folded header", f"{REQUEST}X: a\r\n {SMUGGLED}", 400),
    Attack("a header with a space in its name", f"{REQUEST}Content-Length : 3\r\n\r\nabc", 400),
    Attack("a header without a name", f"{REQUEST}: x\r\n\r\n", 400),
    Attack("a NUL in a header", f"{REQUEST}X: a\0b\r\n\r\n", 400),
    Attack("two lengths", f"{REQUEST}Content-Length: 3\r\nContent-Length: 60\r\n\r\nabc", 400),
    Attack("the same length twice", f"{REQUEST}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    Attack("a list of lengths", f"{REQUEST}Content-Length: 3, 3\r\n\r\nabc", 400),
    Attack("a length with a sign", f"{REQUEST}Content-Length: +3\r\n\r\nabc", 400),
    Attack("a negative length", f"{REQUEST}Content-Length: -3\r\n\r\nabc", 400),
    Attack("a chunked body", f"{REQUEST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    Attack("a chunked body with a length", f"{REQUEST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    Attack("an unknown coding", f"{REQUEST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 411),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize("row", HIDDEN, ids=title)
def test_a_server_reads_exactly_the_request_that_was_judged(
    row: Attack, port: int, good: Origin, inside: Origin
) -> None:
    answer = ask(port, row.bytes(good, inside))

    assert status(answer) == row.status, answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert inside.connections == 0 and good.connections == (row.status == 200)
    for head in good.heads:
        lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
        assert [line for line in lines if line.lower().startswith(b"host:")] == [b"Host: good.example:%d" % good.port]
        assert head.count(b"HTTP/1.1") == 1 and INSIDE.encode() not in b"\n".join(lines[1:])


def test_the_same_bytes_are_two_requests_to_a_server_that_keeps_a_connection(good: Origin, inside: Origin) -> None:
    """The control for what is behind a request: without the proxy, the server reads both."""
    requests: list[bytes] = []

    def read_two(connection: socket.socket) -> None:
        data = b""
        while data.count(b"\r\n\r\n") < 2:
            data += connection.recv(1 << 16)
        requests.extend(data.split(b"\r\n\r\n")[:2])
        connection.sendall(OK)

    good.talk = read_two
    ask(good.port, HIDDEN[0].bytes(good, inside))
    assert [request.split()[1] for request in requests] == [
        b"http://good.example:%d/a" % good.port,
        b"http://127.0.0.2:%d/" % inside.port,
    ]


BAD = [
    ("GET /a HTTP/1.1", 400),
    ("OPTIONS * HTTP/1.1", 400),
    ("GET", 400),
    ("", 400),
    ("GET http://good.example/ HTTP/2.0", 400),
    ("GET http://good.example/", 400),
    ("G\x00T http://good.example/ HTTP/1.1", 400),
    ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ("connect good.example:443 HTTP/1.1", 400),
    ("CONNECT good.example HTTP/1.1", 400),
    ("CONNECT good.example: HTTP/1.1", 400),
    ("CONNECT good.example:0 HTTP/1.1", 400),
    ("CONNECT good.example:65536 HTTP/1.1", 400),
    ("CONNECT good.example:443:80 HTTP/1.1", 400),
    ("CONNECT :443 HTTP/1.1", 400),
    ("CONNECT http://good.example:443 HTTP/1.1", 400),
    ("GET http://good.example:0/ HTTP/1.1", 400),
    ("GET http://good.example:65536/ HTTP/1.1", 400),
    ("GET http:///a HTTP/1.1", 400),
    ("GET https://good.example/ HTTP/1.1", 501),
    ("GET file:///etc/passwd HTTP/1.1", 501),
    ("GET gopher://good.example/ HTTP/1.1", 501),
    (f"GET http://good.example/{'a' * 9000} HTTP/1.1", 400),
    (f"GET http://good.example/ HTTP/1.1\r\nX: {'a' * 70_000}", 431),
]


@pytest.mark.every_row
@pytest.mark.parametrize(("text", "expected"), BAD, ids=[text[:40].encode().hex() or "empty" for text, _ in BAD])
def test_what_is_not_a_request_is_refused_in_words(port: int, good: Origin, text: str, expected: int) -> None:
    answer = ask(port, f"{text}\r\n\r\n".encode("latin-1"))
    assert status(answer) == expected, answer
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Connection: close" in head and body.startswith(b"typed-toolkit: ") and body.endswith(b"\n")
    assert good.connections == 0


def test_redirects_are_requests_of_their_own(port: int, good: Origin, inside: Origin) -> None:
    good.answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/\r\nContent-Length: 0\r\n\r\n" % inside.port
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
    with pytest.raises(urllib.error.HTTPError) as refused:
        opener.open(f"http://good.example:{good.port}/")
    assert refused.value.code == 403 and b"127.0.0.2" in refused.value.read()
    refused.value.close()
    assert (good.connections, inside.connections) == (1, 0)
    with urllib.request.build_opener().open(f"http://127.0.0.1:{good.port}/") as followed:  # the control
        assert followed.read() == b"five."


def test_a_name_is_looked_up_once_and_only_if_its_host_is_allowed(good: Origin) -> None:
    lookups: list[str] = []
    with running_proxy(network(lookups=lookups)) as (_, port):
        assert status(ask(port, b"GET http://both.example:%d/ HTTP/1.1\r\n\r\n" % good.port)) == 200
        assert status(ask(port, b"GET http://data-in-a-name.evil.example/ HTTP/1.1\r\n\r\n")) == 403
    assert lookups == ["both.example"], "of two addresses the permitted one was used"


def test_a_judge_refuses_before_the_lookup(good: Origin) -> None:
    judged: list[str] = []
    lookups: list[str] = []

    def judge(url: str) -> None:
        judged.append(url)
        if "/secret" in url or url.startswith("https:"):
            raise ToolNotAllowed("a rule denies this")

    with running_proxy(network(lookups=lookups), judge) as (_, port):
        for request, expected in (
            (b"GET http://GOOD.example:%d/secret HTTP/1.1\r\n\r\n", 403),
            (b"CONNECT good.example:%d HTTP/1.1\r\n\r\n", 403),
            (b"GET http://good.example:%d/open HTTP/1.1\r\n\r\n", 200),
        ):
            answer = ask(port, request % good.port)
            assert status(answer) == expected and (expected == 200 or b"a rule denies this" in answer)
    origin = f"good.example:{good.port}"
    assert judged == [f"http://{origin}/secret", f"https://{origin}/", f"http://{origin}/open"]
    assert lookups == ["good.example"]


# --- ordinary programs


def fail(*arguments: object) -> NoReturn:
    raise ValueError("a mistake in the settings")


FAILING: dict[str, tuple[Network, UrlJudge | None]] = {
    "a resolver that raises": (Network(resolve=fail), None),
    "a resolver that returns no text": (Network(resolve=lambda host, port: [1]), None),  # type: ignore[list-item]
    "a judge that raises": (network(), fail),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_of_the_callers_code_is_logged_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A command may ask without end; without a log, each would print a traceback."""
    with running_proxy(*FAILING[name]) as (_, port):
        answers = {ask(port, b"CONNECT good.example:443 HTTP/1.1\r\n\r\n") for _ in range(3)}
    assert [status(answer) for answer in answers] == [502] and "log of the agent" in answers.pop().decode()
    assert [(record.name, record.exc_info is not None) for record in caplog.records] == [("toolkit", True)]


def test_a_refusal_names_the_host_and_the_setting(port: int) -> None:
    answer = ask(port, b"CONNECT pypi.example:443 HTTP/1.1\r\n\r\n").decode()
    first, _, body = answer.partition("\r\n")[0], *answer.partition("\r\n\r\n")[1:]
    for text in (first, body):
        assert "'pypi.example'" in text and "Network(allow_hosts=[...]" in text


def test_headers_for_the_proxy_alone_are_not_sent_on(port: int, good: Origin) -> None:
    request = (
        b"PUT http://good.example:%d/a?b=c#d HTTP/1.0\r\nAccept: x\r\nProxy-Authorization: Basic eA==\r\nX-Hop: 1\r\n"
        b"Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop, Content-Length\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
        b"Upgrade: h2c\r\nContent-Length: 4\r\nCookie: caf\xe9\r\n\r\nbody"
    )
    assert status(ask(port, request % good.port)) == 200
    assert good.heads == [
        b"PUT /a?b=c HTTP/1.0\r\nHost: good.example:%d\r\nAccept: x\r\nCookie: caf\xe9\r\nContent-Length: 4\r\n"
        b"Connection: close\r\n\r\nbody" % good.port
    ]


def test_a_server_that_keeps_the_connection_open_does_not_keep_the_command(port: int, good: Origin) -> None:
    released = threading.Event()

    def keep_open(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 5\r\n\r\nfive."
        )
        released.wait(60)

    good.talk = keep_open
    with socket.create_connection((GOOD, port)) as client:
        client.sendall(b"GET http://good.example:%d/ HTTP/1.1\r\n\r\n" % good.port)
        data = b""
        while not data.endswith(b"five."):
            data += client.recv(1 << 16)
    released.set()
    assert data == (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfive."
    )


ANSWERS = [
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfive.\r\n0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 204 No Content\r\n\r\n",
]


@pytest.mark.parametrize("answer", ANSWERS, ids=["chunked", "until-close", "empty"])
def test_responses_are_passed_on_to_the_end(port: int, good: Origin, answer: bytes) -> None:
    good.answer = answer
    expected = answer.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    assert ask(port, b"GET http://good.example:%d/ HTTP/1.1\r\n\r\n" % good.port) == expected


def test_what_is_not_http_is_passed_on_as_it_is(port: int, good: Origin) -> None:
    good.answer = b"SSH-2.0-x\r\n" + b"y" * 200_000
    assert ask(port, b"GET http://good.example:%d/ HTTP/1.1\r\n\r\n" % good.port) == good.answer


def test_an_answer_before_the_end_of_a_body_arrives(port: int, good: Origin) -> None:
    good.answer = b"HTTP/1.1 413 Too large\r\nContent-Length: 0\r\n\r\n"
    request = b"POST http://good.example:%d/ HTTP/1.1\r\nContent-Length: 100000000\r\n\r\nsome" % good.port
    assert status(ask(port, request)) == 413


def refuse_the_rest(connection: socket.socket) -> None:
    """Answers and closes with unread data, which resets the connection, while its client is still sending."""
    connection.recv(1)
    connection.sendall(b"HTTP/1.1 413 Too large\r\nContent-Length: 3\r\n\r\nbig")


@pytest.mark.parametrize("tunnel", [False, True], ids=["request", "tunnel"])
def test_a_server_that_refuses_the_rest_of_a_request_is_heard(port: int, good: Origin, tunnel: bool) -> None:
    good.talk = refuse_the_rest
    head = b"POST http://good.example:%d/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (good.port, 8 << 20)
    with open_tunnel(port, good) if tunnel else socket.create_connection((GOOD, port)) as client:
        sender = threading.Thread(target=send_what_is_taken, args=(client, head + b"x" * (8 << 20)))
        sender.start()
        heard = read_until_broken(client)
        sender.join()
    assert status(heard) == 413 and heard.endswith(b"\r\n\r\nbig")


def send_what_is_taken(client: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        client.sendall(data)


def read_until_broken(client: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(OSError):
        while more := client.recv(1 << 16):
            data += more
    return data


def test_a_command_that_breaks_off_its_request_does_not_keep_the_connection(port: int, good: Origin) -> None:
    ended = threading.Event()

    def wait_for_the_rest(connection: socket.socket) -> None:
        read_all(connection)
        ended.set()

    good.talk = wait_for_the_rest
    with socket.create_connection((GOOD, port)) as client:
        client.sendall(b"POST http://good.example:%d/ HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf" % good.port)
    assert ended.wait(30)


def test_a_refused_upload_gets_its_answer(port: int) -> None:
    body = b"x" * (4 << 20)
    request = b"POST http://evil.example/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert status(ask(port, request + body)) == 403


def test_a_tunnel_passes_both_directions_and_their_ends_on(port: int, good: Origin) -> None:
    def echo_reversed(connection: socket.socket) -> None:
        connection.sendall(read_all(connection)[::-1])

    good.talk = echo_reversed
    sent = bytes(range(256)) * 4000
    with socket.create_connection((GOOD, port)) as client:
        # The first bytes come with the head, as some programs send them.
        client.sendall(b"CONNECT good.example:%d HTTP/1.1\r\nHost: x\r\n\r\n" % good.port + sent[:10])
        assert read_head(client) == b"HTTP/1.1 200 Connection established\r\n\r\n"
        client.sendall(sent[10:])
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == sent[::-1]


def test_a_server_that_does_not_answer_the_phone(port: int) -> None:
    with socket.create_server((GOOD, 0)) as closed:
        free = closed.getsockname()[1]
    answer = ask(port, b"CONNECT good.example:%d HTTP/1.1\r\n\r\n" % free)
    assert status(answer) == 502 and b"could not connect to 'good.example'" in answer
    with running_proxy(network(names={})) as (_, other):
        assert status(ask(other, b"CONNECT good.example:443 HTTP/1.1\r\n\r\n")) == 502


def test_a_response_that_is_cut_off_does_not_look_whole(port: int, good: Origin) -> None:
    def cut_off(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nhalf of it")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    good.talk = cut_off
    with pytest.raises(ConnectionResetError):
        ask(port, b"GET http://good.example:%d/ HTTP/1.1\r\n\r\n" % good.port)


# --- bounds


def open_tunnel(port: int, origin: Origin) -> socket.socket:
    client = socket.create_connection((GOOD, port))
    client.sendall(b"CONNECT good.example:%d HTTP/1.1\r\n\r\n" % origin.port)
    assert status(read_head(client)) == 200
    return client


def hold(connection: socket.socket) -> None:
    read_all(connection)


def test_more_connections_wait_until_one_has_ended(port: int, good: Origin) -> None:
    good.talk = hold
    tunnels = [open_tunnel(port, good) for _ in range(MAX_CONNECTIONS)]
    assert len(proxy_threads()) == MAX_CONNECTIONS + 1
    with socket.create_connection((GOOD, port)) as waiting:
        waiting.sendall(b"GET /a HTTP/1.1\r\n\r\n")
        assert len(proxy_threads()) == MAX_CONNECTIONS + 1
        tunnels.pop().close()
        assert status(read_all(waiting)) == 400
    for tunnel in tunnels:
        tunnel.close()


def test_a_connection_on_which_nothing_moves_ends(good: Origin) -> None:
    good.talk = hold
    with running_proxy(network(), idle_seconds=0.01) as (_, port), pytest.raises(ConnectionResetError):
        ask(port, b"CONNECT good.example:%d HTTP/1.1\r\n\r\n" % good.port)


def test_memory_stays_flat_between_a_fast_server_and_a_slow_command(port: int, good: Origin) -> None:
    size, block = 48 << 20, b"x" * (1 << 20)

    def flood(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        for _ in range(size >> 20):
            connection.sendall(block)

    good.talk = flood
    with socket.create_connection((GOOD, port)) as client:
        tracemalloc.start()
        client.sendall(b"GET http://good.example:%d/ HTTP/1.1\r\n\r\n" % good.port)
        received = 0
        while more := len(client.recv(1 << 16)):
            received += more
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert received > size and peak < 4 << 20


def test_closing_ends_everything(good: Origin) -> None:
    good.talk = hold
    with running_proxy(network()) as (proxy, port):
        tunnels = [open_tunnel(port, good) for _ in range(3)]
        silent = socket.create_connection((GOOD, port))
        assert proxy_threads()
        proxy.close()
        assert not proxy_threads()
        for client in (*tunnels, silent):
            with client, contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((GOOD, port))
        proxy.close()  # a second time does nothing


def test_closing_does_not_wait_for_a_lookup() -> None:
    asked, released = threading.Event(), threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        asked.set()
        released.wait(60)
        return []

    with running_proxy(Network(resolve=resolve)) as (proxy, port), socket.create_connection((GOOD, port)) as client:
        client.sendall(b"CONNECT slow.example:443 HTTP/1.1\r\n\r\n")
        assert asked.wait(60)
        proxy.close()
        assert not proxy_threads()
    released.set()
