"""Servers over HTTP: one origin, no redirects, nothing from the environment but what is named, and errors in words."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit
from tests.guard.net.test_fetch import certificates
from tests.guard.process.test_ends import wait_for
from tests.packs.conftest import Doors
from tests.packs.odd_http import OddHttp, odd_http
from tests.runtime.conftest import Door
from toolkit import Pack
from toolkit.errors import SandboxViolation, SetupError, ToolFailed, ToolkitError, ToolTimeout
from toolkit.guard import Network
from toolkit.packs import McpServer, McpTool, mcp_pack

__all__ = ["certificates"]  # a fixture

GREET = "served.generated.models.web_greet:WebGreetOutput"


@pytest.fixture
def odd() -> Iterator[OddHttp]:
    with odd_http() as server:
        yield server


def pack(url: str, **headers: str) -> Pack:
    return mcp_pack(McpServer(name="odd", url=url, headers=headers, timeout=20), {"web_greet": McpTool("ask", GREET)})


def greet(door: Door) -> str:
    text: str = door.tool("web_greet", name="x").text
    return text


def test_a_session_is_made_once_kept_and_given_back(make_door: Doors, odd: OddHttp) -> None:
    door = make_door(pack(odd.url))
    assert [greet(door) for _ in range(3)] == ["5", "5", "5"]
    door.close()
    assert odd.methods().count("initialize") == 1 and odd.methods().count("tools/call") == 3
    assert "DELETE" in [verb for verb, *_ in odd.requests]
    assert {path for _, path, _, _ in odd.requests} == {"/mcp"}


def test_a_server_sees_the_version_of_the_toolkit(make_sync: Doors, odd: OddHttp) -> None:
    assert greet(make_sync(pack(odd.url))) == "5"
    bodies = [body for verb, *_, body in odd.requests if verb == "POST" and body.get("method") == "initialize"]
    assert [body["params"]["clientInfo"]["version"] for body in bodies] == [toolkit.__version__]


def test_headers_are_filled_from_the_environment_and_nothing_else_is_sent(
    make_sync: Doors, odd: OddHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("TOKEN", "t0ken")
    assert greet(make_sync(pack(odd.url, Authorization="Bearer ${TOKEN}"))) == "5"
    assert {headers["authorization"] for *_, headers, _ in odd.requests} == {"Bearer t0ken"}
    assert {headers["accept-encoding"] for *_, headers, _ in odd.requests} == {"identity"}


def test_a_variable_that_is_missing_or_no_header_is_named_without_its_value(
    make_sync: Doors, odd: OddHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolFailed, match="needs the environment variable NO_SUCH_TOKEN; set it"):
        greet(make_sync(pack(odd.url, Authorization="Bearer ${NO_SUCH_TOKEN}")))
    monkeypatch.setenv("TOKEN", "s3cret\r\nHost: elsewhere")
    with pytest.raises(ToolkitError, match="'Authorization' must not contain line breaks") as caught:
        greet(make_sync(pack(odd.url, Authorization="Bearer ${TOKEN}")))
    assert "s3cret" not in str(caught.value)
    assert odd.requests == []


@pytest.mark.parametrize("habit", ["redirects", "redirects within"])
def test_redirects_are_refused_wherever_they_lead(make_sync: Doors, odd: OddHttp, habit: str) -> None:
    with odd_http() as elsewhere:
        odd.habit, odd.elsewhere = habit, elsewhere.url + "?token=x"
        with pytest.raises(
            SandboxViolation, match=r"redirects to '.*', which is refused: only the configured url"
        ) as caught:
            greet(make_sync(pack(odd.url)))
        assert "token" not in str(caught.value)
        assert elsewhere.requests == []
    assert {path for _, path, _, _ in odd.requests} == {"/mcp"}


def test_a_redirect_that_holds_the_token_is_told_without_it(
    make_sync: Doors, odd: OddHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-t0ken")
    odd.habit = "redirects telling"
    with pytest.raises(SandboxViolation) as caught:
        greet(make_sync(pack(odd.url, **{"X-Token": "${TOKEN}"})))
    assert "redirects to '/${TOKEN}'" in str(caught.value)


def test_loopback_is_reached_because_it_is_configured_but_denied_hosts_stay_denied(
    make_sync: Doors, odd: OddHttp
) -> None:
    assert greet(make_sync(pack(odd.url))) == "5"
    for network in (
        Network(deny_hosts=["127.0.0.1"]),
        Network(allow_hosts=["example.org"]),
        Network(allow_hosts=[]),
    ):
        with pytest.raises(SandboxViolation, match=r"127\.0\.0\.1"):
            greet(make_sync(pack(odd.url), network=network))
    named = odd.url.replace("127.0.0.1", "shop.example")
    resolved = Network(resolve=lambda host, port: ["127.0.0.1"])
    assert greet(make_sync(pack(named), network=resolved)) == "5"
    denied = Network(resolve=resolved.resolve, deny_hosts=["127.0.0.1"])
    with pytest.raises(SandboxViolation, match=r"shop\.example"):  # an address stays denied behind a name
        greet(make_sync(pack(named), network=denied))
    metadata = Network(resolve=lambda host, port: ["169.254.169.254"])
    with pytest.raises(SandboxViolation, match=r"shop\.example"):
        greet(make_sync(pack(named), network=metadata))
    assert odd.methods().count("tools/call") == 2


FAILURES = {
    "status": ("REMOTE", "returned status 401"),
    "garbage": ("REMOTE", "the MCP server 'odd' sent an answer that cannot be read: "),
    "no type": ("REMOTE", "Unexpected content type: text/plain"),
    "packed": ("REMOTE", "used an unrequested Content-Encoding"),
    "huge": ("TOO_LARGE", "longer than 32 MiB"),
    "many parts": ("TOO_LARGE", "more than 10000 parts of content"),
    "many parts in an event": ("TOO_LARGE", "more than 10000 parts of content"),
    "many parts in many lines": ("TOO_LARGE", "more than 10000 parts of content"),
    "hangs up": ("NETWORK", "the connection was lost"),
    "ends the stream": ("SERVER_DIED", "closed the connection during the call"),
    "always forgets": ("REMOTE", "ends every new session at once"),
}


@pytest.mark.parametrize("habit", FAILURES)
def test_what_fails_fails_one_call_in_words(make_sync: Doors, odd: OddHttp, habit: str) -> None:
    door = make_sync(pack(odd.url))
    odd.habit = habit
    with pytest.raises(ToolFailed) as caught:
        greet(door)
    reason, words = FAILURES[habit]
    assert (caught.value.reason, words in caught.value.message) == (reason, True), str(caught.value)
    odd.habit = "plain"
    assert greet(door) == "5"


def test_an_answer_in_an_event_of_several_lines_is_read(make_sync: Doors, odd: OddHttp) -> None:
    odd.habit = "answers in an event"
    assert greet(make_sync(pack(odd.url))) == "5"


def test_a_forgotten_session_is_made_anew_once_without_a_word(make_sync: Doors, odd: OddHttp) -> None:
    door = make_sync(pack(odd.url))
    odd.habit = "forgets once"
    assert greet(door) == "5"
    assert odd.methods().count("initialize") == 2 and odd.methods().count("tools/call") == 2


def test_a_call_nobody_waits_for_is_cancelled_at_the_server(make_door: Doors, odd: OddHttp) -> None:
    door = make_door(pack(odd.url))
    odd.habit = "silent"
    with pytest.raises(ToolTimeout):
        door.with_options(deadline=1).tool("web_greet", name="x")
    wait_for(lambda: "notifications/cancelled" in odd.methods(), "the server never heard of it")


def test_a_server_that_does_not_say_goodbye_is_not_waited_for(make_sync: Doors, odd: OddHttp) -> None:
    door = make_sync(pack(odd.url))
    assert greet(door) == "5"
    odd.habit = "silent"
    door.close()
    assert "DELETE" in [verb for verb, *_ in odd.requests]


def test_certificates_are_checked_as_the_network_says(make_sync: Doors, certificates: Path | None) -> None:
    if certificates is None:
        pytest.skip("no openssl command (3.0 or later) to make certificates with")
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificates / "site.pem", certificates / "site.key")
    known = ssl.create_default_context(cafile=str(certificates / "ca.pem"))

    def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with odd_http(served) as odd:
        site = odd.url.replace("127.0.0.1", "site.test")
        assert greet(make_sync(pack(site), network=Network(resolve=resolve, tls=known))) == "5"
        other = odd.url.replace("127.0.0.1", "other.test")
        for url, network in ((site, Network(resolve=resolve)), (other, Network(resolve=resolve, tls=known))):
            with pytest.raises(ToolFailed, match="its certificate is not valid"):
                greet(make_sync(pack(url), network=network))
        assert odd.methods().count("tools/call") == 1


def test_nobody_there_is_told_and_the_next_call_tries_again(make_sync: Doors) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    door = make_sync(pack(f"http://127.0.0.1:{port}/mcp"))
    for _ in range(2):
        with pytest.raises(ToolFailed, match="the connection failed") as caught:
            greet(door)
        assert caught.value.reason == "NETWORK"


@pytest.mark.parametrize("url", ["ftp://example.org", "http://user:pass@example.org/mcp", "http://2130706433/mcp", "x"])
def test_an_address_that_is_none_is_a_mistake_of_the_set_up(url: str) -> None:
    with pytest.raises(SetupError, match="the url of the MCP server 'odd'"):
        pack(url)


def test_a_server_is_reached_in_one_way() -> None:
    for settings in ({}, {"command": ("x",), "url": "http://example.org"}):
        with pytest.raises(SetupError, match="a command or a url, not both"):
            McpServer(name="x", **settings)  # type: ignore[arg-type]
