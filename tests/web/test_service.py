"""Requests to one service: exactly its origin, wherever it is, and nothing that the network denies."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator

import pytest

from tests.packs.service import Answer, Service, running_service
from toolkit.errors import InvalidArguments, SandboxViolation, ToolCancelled, ToolFailed
from toolkit.guard import NetGuard, Network


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as running:
        yield running


def named(port: int) -> str:
    return f"http://service.test:{port}"


def resolving(address: str, **keys: object) -> Network:
    return Network(resolve=lambda host, port: [address], **keys)  # type: ignore[arg-type]


def test_a_service_on_this_machine_may_be_asked_where_a_page_may_not(service: Service) -> None:
    guard = NetGuard(Network())
    with pytest.raises(SandboxViolation):
        guard.fetch(f"{service.url}/x")
    answer = guard.service(service.url).send("/x?y=1", method="POST", headers={"X-A": "b"}, body=b"data")
    assert (answer.status, answer.body, answer.final_url) == (200, b"{}", f"{service.url}/x?y=1")
    assert (service.last.line, service.last.body, service.last.headers["x-a"]) == ("POST /x?y=1 HTTP/1.1", b"data", "b")
    assert len(service.seen) == 1


def test_where_hosts_are_listed_the_service_must_be_among_them(service: Service) -> None:
    assert NetGuard(Network(allow_hosts=["127.0.0.1"])).service(service.url).send("/").status == 200


@pytest.mark.parametrize(("by_name", "network"), [
    (False, Network(deny_hosts=["127.0.0.1"])),
    (False, Network(allow_hosts=[])),
    (False, Network(allow_hosts=["example.org"])),
    (True, resolving("127.0.0.1", deny_hosts=["*.test"])),
    (True, resolving("127.0.0.1", deny_hosts=["127.0.0.1"])),
    (True, resolving("::ffff:127.0.0.1", deny_hosts=["127.0.0.1"])),
])  # fmt: skip
def test_what_is_denied_stays_denied(service: Service, by_name: bool, network: Network) -> None:
    with pytest.raises(SandboxViolation):
        NetGuard(network).service(named(service.port) if by_name else service.url).send("/")
    assert service.seen == []


def test_a_name_that_leads_inside(service: Service) -> None:
    assert NetGuard(resolving("127.0.0.1")).service(named(service.port)).send("/").status == 200
    for address in ("169.254.169.254", "fd00:ec2::254"):
        with pytest.raises(SandboxViolation):
            NetGuard(resolving(address)).service(named(service.port)).send("/")


PUBLIC_ONLY = {
    "a name": ("service.test", ["127.0.0.1"]),
    "a name with IPv4 inside IPv6": ("service.test", ["::ffff:127.0.0.1"]),
    "a name with several addresses": ("service.test", ["10.0.0.1", "127.0.0.1", "::1"]),
    "a literal": ("127.0.0.1", []),
}


@pytest.mark.parametrize("case", PUBLIC_ONLY)
def test_a_service_that_must_be_public_is_not_reached_inside(service: Service, case: str) -> None:
    host, addresses = PUBLIC_ONLY[case]
    guard = NetGuard(Network(resolve=lambda host, port: addresses))
    url = f"http://{host}:{service.port}"
    with pytest.raises(SandboxViolation) as refused:
        guard.service(url, public_only=True).send("/")
    assert refused.value.details == {"reason": "NOT_PUBLIC"}
    assert service.seen == []
    # Who names a service inside gets it, also from the same guard.
    allowed = NetGuard(Network(resolve=lambda host, port: ["127.0.0.1"]))
    with pytest.raises(SandboxViolation):
        allowed.service(url, public_only=True).send("/")
    assert allowed.service(url).send("/").status == 200


def test_every_lookup_is_judged(service: Service) -> None:
    """A name that moves inside after the first call gains nothing. The allowed address stands for a public one."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]])
    network = Network(resolve=lambda host, port: next(answers), allow_addresses=["127.0.0.1/32"])
    guard = NetGuard(network).service(named(service.port), public_only=True)
    assert guard.send("/").status == 200
    with pytest.raises(SandboxViolation):
        guard.send("/")
    assert guard.send("/").status == 200
    assert len(service.seen) == 2


def test_redirects_are_answers(service: Service) -> None:
    with running_service() as other:
        for target in (f"{other.url}/", "/elsewhere", "file:///etc/passwd"):
            service.usual = Answer(status=302, headers={"Location": target})
            assert NetGuard(Network()).service(service.url).send("/x").status == 302
        assert other.seen == []
    assert [seen.line for seen in service.seen] == ["GET /x HTTP/1.1"] * 3


@pytest.mark.parametrize(
    "target", ["x", "", "//other.test/", "@other.test/", ":1/", "http://other.test/", "\r\n", "/\r\nX: 1"]
)
def test_no_target_leads_to_another_origin(service: Service, target: str) -> None:
    guard = NetGuard(resolving("127.0.0.1")).service(service.url)
    try:
        guard.send(target)
    except InvalidArguments:
        assert service.seen == []
    else:
        assert service.last.line == f"GET {target} HTTP/1.1"
        assert service.last.headers["host"] == f"127.0.0.1:{service.port}"


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "get", "GET / HTTP/1.1\r\nX:", ""])
def test_methods_that_are_none(service: Service, method: str) -> None:
    with pytest.raises(InvalidArguments, match="the method must be one of"):
        NetGuard(Network()).service(service.url).send("/", method=method)
    assert service.seen == []


def test_sizes_are_bounded(service: Service) -> None:
    guard = NetGuard(Network()).service(service.url)
    with pytest.raises(InvalidArguments, match="at most 33554432 bytes"):
        guard.send("/", method="PUT", body=bytes((32 << 20) + 1))
    service.usual = Answer(gzip.compress(bytes(10 << 20)), headers={"Content-Encoding": "gzip"})
    answer = guard.send("/", max_bytes=1000)
    assert (len(answer.body), answer.truncated) == (1000, True)


def test_a_call_can_be_ended_from_outside(service: Service) -> None:
    ended = threading.Event()

    def check() -> None:
        if service.waiting.is_set():
            ended.set()
            raise ToolCancelled("enough")

    with pytest.raises(ToolCancelled):
        NetGuard(Network()).with_check(check).service(service.url).send("/wait")
    assert ended.is_set()


@pytest.mark.slow
def test_a_call_has_an_end(service: Service) -> None:
    with pytest.raises(ToolFailed, match=r"no complete response within 0\.2 s"):
        NetGuard(Network()).service(service.url).send("/wait", timeout=0.2)


def test_nobody_there() -> None:
    with running_service() as gone:
        url = gone.url
    with pytest.raises(ToolFailed) as caught:
        NetGuard(Network()).service(url).send("/")
    assert caught.value.reason == "NETWORK"
