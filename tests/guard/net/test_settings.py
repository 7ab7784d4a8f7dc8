"""Settings, lookups and endings that need no network."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence

import pytest

from toolkit.errors import SandboxViolation, SetupError, ToolCancelled, ToolFailed, ToolkitError
from toolkit.guard import Host, NetGuard, Network
from toolkit.guard.network.connect import Deadline, connect
from toolkit.guard.network.hosts import parse_address, system_resolve

WATCHDOG = 60


def judged(network: Network, host: str) -> bool:
    try:
        network.judge_host(Host.parse(host))
    except SandboxViolation:
        return False
    return True


def test_an_empty_list_allows_nothing_and_none_allows_every_host() -> None:
    assert judged(Network(), "example.org")
    assert not judged(Network(allow_hosts=[]), "example.org")
    assert not judged(Network([]), "203.0.114.10")


def test_deny_wins_over_allow() -> None:
    network = Network(
        allow_hosts=["example.org", "*.example.org"], deny_hosts=["*.bad.example.org", "worse.example.org"]
    )
    assert judged(network, "example.org") and judged(network, "bad.example.org")
    assert not judged(network, "very.bad.example.org") and not judged(network, "WORSE.example.org")


def test_a_denied_address_is_denied_behind_names_and_inside_other_addresses() -> None:
    network = Network(deny_hosts=["203.0.114.10"], allow_addresses=["64:ff9b::/96"])
    addresses = {
        text: parse_address(text)
        for text in ("203.0.114.10", "203.0.114.11", "64:ff9b::cb00:720a", "64:ff9b::cb00:720b")
    }
    assert [text for text, address in addresses.items() if address and network.permits(address)] == [
        "203.0.114.11",
        "64:ff9b::cb00:720b",
    ]


@pytest.mark.parametrize("name", ["allow_hosts", "deny_hosts", "allow_addresses"])
def test_a_lone_text_is_no_list(name: str) -> None:
    with pytest.raises(SetupError, match=name):
        Network(**{name: "10.0.0.0"})  # type: ignore[arg-type]


def test_a_wrong_pattern_is_found_when_the_settings_are_made() -> None:
    for wrong in ({"allow_hosts": ["*"]}, {"deny_hosts": ["http://x"]}, {"allow_addresses": ["10.0.0.1/8"]}):
        with pytest.raises(SetupError):
            Network(**wrong)  # type: ignore[arg-type]


def test_tls_that_checks_nothing_is_refused() -> None:
    unnamed = ssl.create_default_context()
    unnamed.check_hostname = False
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    for context in (unnamed, unchecked):
        with pytest.raises(SetupError, match="tls"):
            Network(tls=context)
    assert Network(tls=ssl.create_default_context()).context.verify_mode is ssl.CERT_REQUIRED


def test_the_default_context_checks_and_is_made_once() -> None:
    network = Network()
    assert network.context.check_hostname and network.context.verify_mode is ssl.CERT_REQUIRED
    assert network.context is network.context


def test_settings_do_not_change() -> None:
    hosts = ["example.org"]
    network = Network(allow_hosts=hosts)
    hosts.append("other.example")
    assert not judged(network, "other.example")
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.allow_hosts = None  # type: ignore[misc]
    assert network == Network(allow_hosts=("example.org",)) and hash(network) is not None
    assert repr(network) == "Network(allow_hosts=('example.org',), deny_hosts=(), allow_addresses=())"


def test_settings_load_neither_socket_nor_ssl() -> None:
    code = "import sys, toolkit.guard.network.hosts; print({'socket', 'ssl', 'http.client'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"set()\n"


def test_the_system_s_lookup_is_judged() -> None:
    assert {"127.0.0.1", "::1"} & set(system_resolve("localhost", 80))
    with pytest.raises(SandboxViolation):
        NetGuard(Network()).fetch("http://localhost/", timeout=WATCHDOG)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_control_the_same_is_reached_when_allowed(listener: socket.socket) -> None:
    network = Network(allow_addresses=["127.0.0.1", "::1"])
    port = listener.getsockname()[1]
    with connect(network, Host.parse("localhost"), port, Deadline(WATCHDOG, lambda: None), tls=False) as sock:
        assert sock.getpeername() == ("127.0.0.1", port)


@pytest.fixture
def deaf(listener: socket.socket) -> Iterator[str]:
    """An address at which packets to the listener's port are dropped, because nobody takes the connections there."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.2", listener.getsockname()[1]), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield "127.0.0.2"


@pytest.mark.slow
def test_an_answer_that_swallows_packets_leaves_time_for_the_next(listener: socket.socket, deaf: str) -> None:
    network = Network(allow_addresses=["127.0.0.0/8"], resolve=lambda host, port: [deaf, "127.0.0.1"])
    deadline, port = Deadline(6, lambda: None), listener.getsockname()[1]
    with connect(network, Host.parse("site.test"), port, deadline, tls=False) as sock:
        assert sock.getpeername() == ("127.0.0.1", port)


@pytest.mark.slow
def test_a_connection_that_is_never_taken_is_ended_by_the_deadline(listener: socket.socket, deaf: str) -> None:
    network = Network(allow_addresses=["127.0.0.0/8"])
    with pytest.raises(ToolFailed) as caught:
        connect(network, Host.parse(deaf), listener.getsockname()[1], Deadline(0.3, lambda: None), tls=False)
    assert caught.value.reason == "NETWORK" and caught.value.details["timed_out"] is True


def resolving(*answers: str) -> Network:
    return Network(resolve=lambda host, port: answers)


def failure(network: Network, timeout: float = WATCHDOG) -> ToolkitError:
    with pytest.raises(ToolkitError) as caught:
        NetGuard(network).fetch("http://site.test/", timeout=timeout)
    return caught.value


@pytest.mark.parametrize("answer", ["10.1.2.3", "fe80::1%lo", "::ffff:8.8.8.8", "127.1", "site.test", "", "8.8.8.8 "])
def test_an_answer_that_is_not_public_or_no_address_is_never_used(answer: str) -> None:
    error = failure(resolving(answer, answer))
    assert isinstance(error, SandboxViolation) and "10.1.2.3" not in error.message


@pytest.mark.parametrize("problem", [socket.gaierror(-2, "asked 10.1.2.3"), TimeoutError(), UnicodeError(), None])
def test_a_failed_lookup(problem: Exception | None) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        if problem:
            raise problem
        return []

    error = failure(Network(resolve=resolve))
    assert isinstance(error, ToolFailed) and error.reason == "NETWORK" and error.retriable
    assert error.message == "the host 'site.test' could not be resolved; check its name"


def test_a_mistake_in_a_lookup_of_the_user_s_own_is_not_hidden() -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise KeyError(host)

    with pytest.raises(KeyError):
        NetGuard(Network(resolve=resolve)).fetch("http://site.test/")


@pytest.fixture
def hanging() -> Iterator[Network]:
    released = threading.Event()

    def resolve(host: str, port: int) -> Sequence[str]:
        released.wait(WATCHDOG)
        return ["10.1.2.3"]

    yield Network(resolve=resolve)
    released.set()


@pytest.mark.slow
def test_a_lookup_that_hangs_is_ended_by_the_deadline(hanging: Network) -> None:
    error = failure(hanging, timeout=0.2)
    assert isinstance(error, ToolFailed) and error.reason == "NETWORK" and error.details["timed_out"] is True


@pytest.mark.slow
def test_a_lookup_that_hangs_is_ended_by_the_caller(hanging: Network) -> None:
    seen: list[None] = []

    def check() -> None:
        seen.append(None)
        if len(seen) > 2:
            raise ToolCancelled("enough")

    with pytest.raises(ToolCancelled):
        NetGuard(hanging).with_check(check).fetch("http://site.test/", timeout=WATCHDOG)
    with pytest.raises(ToolCancelled):
        NetGuard(hanging).fetch("http://site.test/", timeout=WATCHDOG, check=check)


def test_a_view_has_its_own_check() -> None:
    def check() -> None:
        raise ToolCancelled("enough")

    guard = NetGuard(resolving("10.1.2.3"))
    view = guard.with_check(check)
    with pytest.raises(ToolCancelled):
        view.fetch("http://site.test/")
    with pytest.raises(SandboxViolation):
        guard.fetch("http://site.test/")


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_positive(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        NetGuard(Network()).fetch("http://site.test/", timeout=timeout)


def test_a_fetch_is_always_bounded() -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        NetGuard(Network()).fetch("http://site.test/", max_bytes=-1)
