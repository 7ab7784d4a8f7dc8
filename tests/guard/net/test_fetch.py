"""The fetch rows of the attack list, with real servers in a network of their own; the numbers are the list's.

Each refusal is shown twice: the guard makes no connection at all, and without it (or with the address allowed) the
same request arrives.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guard.netns import OTHER_PUBLIC, PUBLIC, PUBLIC_V6, Job, Lab, Outcome
from tests.guard.netns_server import DOCUMENT, PACKED, RAW
from toolkit.guard import Response

D, A, E = "SANDBOX_VIOLATION", "INVALID_TOOL_ARGUMENTS", "TOOL_FAILED"
# Far more than any of these calls takes, far less than what they would take without their limits.
WIDE = 60
SITE = {"site.test": [[PUBLIC]], "other.test": [[OTHER_PUBLIC]]}

OPENSSL_CONFIG = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[site]
basicConstraints = critical, CA:FALSE
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:site.test, DNS:rogue.test, IP:203.0.114.10
"""


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """An authority, a certificate it signed and one that nobody knows; None without the openssl command."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "openssl.cnf").write_text(OPENSSL_CONFIG)
    for name, section, *signer in (
        ("ca", "authority"),
        ("site", "site", "-CA", "ca.pem", "-CAkey", "ca.key"),
        ("rogue", "site"),
    ):
        command = [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
        ]
        command += ["-config", "openssl.cnf", "-extensions", section, "-subj", f"/CN={name}", *signer]
        done = subprocess.run(
            [*command, "-keyout", f"{name}.key", "-out", f"{name}.pem"], cwd=folder, capture_output=True
        )
        if done.returncode:
            return None
    return folder


@pytest.fixture(scope="session")
def lab(certificates: Path | None) -> Iterator[Lab]:
    lab = Lab(certificates)
    try:
        if lab.skip:
            pytest.skip(lab.skip)
        yield lab
    finally:
        lab.close()


@pytest.fixture
def tls(certificates: Path | None) -> None:
    if certificates is None:
        pytest.skip("no openssl command (3.0 or later) to make certificates with")


@dataclass(frozen=True)
class Row:
    """``reaches``: where the same URL leads without the guard; ``allow``: what makes the guard let it through."""

    number: int
    url: str
    code: str = D
    reaches: str = ""
    allow: tuple[str, ...] = ()
    name: str = ""

    @property
    def names(self) -> dict[str, list[list[str]]]:
        return {self.name: [list(self.allow)]} if self.name else {}


def literal(number: int, address: str, reaches: str = "") -> Row:
    host = f"[{address}]" if ":" in address else address
    return Row(number, f"http://{host}/", D, reaches or address, (address,))


ROWS = (
    literal(115, "127.0.0.1"),
    literal(115, "127.8.9.1"),
    literal(115, "::1"),
    Row(115, "http://localhost/", D, "127.0.0.1", ("127.0.0.1",), "localhost"),
    Row(115, "http://inside.test/", D, "::1", ("::1",), "inside.test"),
    literal(116, "0.0.0.0", "127.0.0.1"),
    literal(116, "::", "::1"),
    Row(116, "http://0/", D, "127.0.0.1"),
    *(
        Row(117, f"http://{spelling}/", D, "127.0.0.1")
        for spelling in ("2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1")
    ),
    Row(118, "http://[::ffff:127.0.0.1]/", D, "127.0.0.1", ("::ffff:127.0.0.1", "127.0.0.1")),
    Row(118, "http://[::ffff:7f00:1]/", D, "127.0.0.1", ("::ffff:127.0.0.1", "127.0.0.1")),
    Row(118, "http://[::ffff:a01:203]/", D, "10.1.2.3", ("::ffff:10.1.2.3", "10.1.2.3")),
    *(
        Row(119, f"http://[{address}]/", D, address, (address, "127.0.0.1", "255.255.255.254", "0.0.0.0/0"))
        for address in ("::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::1", "::ffff:0:7f00:1")
    ),
    *(literal(120, address) for address in ("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192")),
    Row(120, "http://[::ffff:169.254.169.254]/", D, "169.254.169.254", ("::ffff:169.254.169.254", "169.254.169.254")),
    Row(120, "http://metadata.test/", D, "169.254.169.254", ("169.254.169.254",), "metadata.test"),
    *(
        literal(121, address)
        for address in (
            "10.1.2.3", "172.16.5.4", "192.168.7.7", "100.64.1.1", "169.254.7.7", "192.0.2.7", "192.88.99.7", "198.18.0.7",
            "198.51.100.7", "203.0.113.7", "240.0.0.7", "fc00::7", "fec0::7", "2001:db8::7", "2001:10::7", "3fff::7",
        )
    ),
    Row(121, "http://224.0.0.1/"),
    Row(121, "http://255.255.255.255/"),
    Row(121, "http://[ff02::1]/"),
    Row(121, "http://[fe80::1]/"),
    *(Row(122, f"http://{host}/", D, "127.0.0.1") for host in ("①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "127．0．0．1")),
    Row(122, "http://127.0.0.1./"),
    Row(122, "http://[::1%251]/"),
    Row(123, "http://site.test@127.0.0.1/", A, "127.0.0.1"),
    Row(123, "http://site.test:80@127.0.0.1/", A, "127.0.0.1"),
    Row(123, "http://127.0.0.1\\@site.test/", A),
    Row(123, "http://127.0.0.1\t/", A, "127.0.0.1"),
    Row(123, "http://127.\n0.0.1/", A, "127.0.0.1"),
    Row(123, "http:127.0.0.1/", A),
    Row(123, "http:/127.0.0.1/", A),
    *(Row(124, url) for url in ("file:///etc/passwd", "ftp://site.test/", "gopher://127.0.0.1:80/_GET", "data:text/plain,x")),
)  # fmt: skip


def ids(row: Row) -> str:
    return f"{row.number}-{row.url!a}"


@pytest.mark.every_row
@pytest.mark.parametrize("row", ROWS, ids=ids)
@pytest.mark.slow
def test_115_to_124_refused_without_a_connection(lab: Lab, row: Row) -> None:
    outcome = lab.run(Job(row.url, row.names))
    assert outcome.code == row.code, outcome
    assert outcome.connections == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.reaches], ids=ids)
@pytest.mark.slow
def test_115_to_124_control_unguarded_it_arrives(lab: Lab, row: Row) -> None:
    outcome = lab.run(Job(row.url, row.names, guarded=False))
    assert outcome.reached == [row.reaches] and outcome.ok.body == row.reaches.encode()


@pytest.mark.parametrize("row", [row for row in ROWS if row.allow], ids=ids)
def test_115_to_124_control_allowed_it_arrives(lab: Lab, row: Row) -> None:
    outcome = lab.run(Job(row.url, row.names, allow_addresses=row.allow))
    assert outcome.reached == [row.reaches] and outcome.ok.body == row.reaches.encode()


@pytest.mark.parametrize(
    ("url", "names", "reaches"),
    [
        (f"http://{PUBLIC}/", {}, PUBLIC),
        (f"http://[{PUBLIC_V6}]/", {}, PUBLIC_V6),
        ("http://site.test/", SITE, PUBLIC),
        ("http://SITE.test:80/?a=b#c", SITE, PUBLIC),
        ("http://both.test/", {"both.test": [[PUBLIC_V6, PUBLIC]]}, PUBLIC_V6),
        ("http://bücher.test/", {"xn--bcher-kva.test": [[PUBLIC]]}, PUBLIC),
    ],
)
def test_neighbour_public_places_are_reached(
    lab: Lab, url: str, names: dict[str, list[list[str]]], reaches: str
) -> None:
    outcome = lab.run(Job(url, names))
    assert outcome.reached == [reaches]
    response = outcome.ok
    assert (response.status, response.body, response.truncated, response.hops) == (200, reaches.encode(), False, ())
    assert (
        response.url == url
        and response.content_type == "text/plain"
        and ("content-type", "text/plain") in response.headers
    )
    assert outcome.requests[0].headers["connection"] == "close"


def test_119_neighbour_a_network_that_has_nothing_but_nat64(lab: Lab) -> None:
    names = {"site.test": [["64:ff9b::cb00:720a"]], "inside.test": [["64:ff9b::7f00:1"]]}
    assert lab.run(Job("http://site.test/", names, allow_addresses=["64:ff9b::/96"])).reached == ["64:ff9b::cb00:720a"]
    inside = lab.run(Job("http://inside.test/", names, allow_addresses=["64:ff9b::/96"]))
    assert inside.code == D and inside.connections == []


def test_the_host_header_holds_the_name_and_an_unusual_port(lab: Lab) -> None:
    assert lab.run(Job("http://Site.test/echo", SITE)).requests[0].headers["host"] == "site.test"
    assert lab.run(Job(f"http://[{PUBLIC_V6}]/echo")).requests[0].headers["host"] == f"[{PUBLIC_V6}]"


def test_a_closed_port_gives_way_to_the_next_answer(lab: Lab) -> None:
    # The second answer has no route at all in that network.
    outcome = lab.run(Job("http://far.test/", {"far.test": [["2606:2800::dead", "203.0.115.1", PUBLIC]]}))
    assert outcome.reached == [PUBLIC] and outcome.ok.status == 200


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1/", "http://[::1]/", "//10.1.2.3/", "http://2130706433/", "http://inside.test/"]
)
def test_125_redirect_to_the_inside(lab: Lab, target: str) -> None:
    names = {**SITE, "inside.test": [["127.0.0.1"]]}
    outcome = lab.run(Job(f"http://site.test/redirect?to={target}", names))
    assert outcome.code == D and outcome.reached == [PUBLIC]


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://site.test/", "data:text/plain,x", "gopher://127.0.0.1/"]
)
def test_125_redirect_to_another_scheme(lab: Lab, target: str) -> None:
    outcome = lab.run(Job(f"http://site.test/redirect?to={target}", SITE))
    assert outcome.code == D and outcome.reached == [PUBLIC]


def test_125_redirect_to_a_denied_host(lab: Lab) -> None:
    job = Job("http://site.test/redirect?to=http://other.test/", SITE, deny_hosts=["other.test"])
    assert (outcome := lab.run(job)).code == D and outcome.reached == [PUBLIC] and outcome.lookups == ["site.test"]


def test_125_control_unguarded_the_redirect_arrives(lab: Lab) -> None:
    outcome = lab.run(Job(f"http://{PUBLIC}/redirect?to=http://127.0.0.1/", guarded=False, follow=True))
    assert outcome.reached == [PUBLIC, "127.0.0.1"] and outcome.ok.body == b"127.0.0.1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_125_neighbour_redirects_between_public_places(lab: Lab, status: int) -> None:
    outcome = lab.run(Job(f"http://site.test/redirect?status={status}&to=http://other.test/x", SITE))
    assert outcome.reached == [PUBLIC, OTHER_PUBLIC] and outcome.lookups == ["site.test", "other.test"]
    response = outcome.ok
    assert (
        response.final_url == "http://other.test/x"
        and len(response.hops) == 1
        and response.body == OTHER_PUBLIC.encode()
    )


@pytest.mark.parametrize("name", ["bad-location", "spaced-location"])
def test_125_redirect_to_what_is_no_url(lab: Lab, name: str) -> None:
    outcome = lab.run(Job(f"http://site.test/raw?name={name}", SITE))
    assert (outcome.code, outcome.reason) == (E, "REMOTE") and outcome.reached == [PUBLIC]


def test_125_neighbours_odd_redirects_that_work(lab: Lab) -> None:
    assert lab.run(Job("http://site.test/raw?name=utf8-location", SITE)).ok.final_url == "http://site.test/plain?%C3%BC"
    assert lab.run(Job("http://site.test/raw?name=no-location", SITE)).ok.status == 302


def test_126_redirect_loop(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/steps?left=1000", SITE))
    assert (outcome.code, outcome.reason) == (E, "REMOTE")
    assert outcome.reached == [PUBLIC] * 6 and outcome.lookups == ["site.test"] * 6


def test_126_neighbour_five_redirects_work(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/steps?left=5", SITE))
    assert outcome.ok.body == b"there" and len(outcome.ok.hops) == 5


REBINDING = {"rebind.test": [[PUBLIC], ["127.0.0.1"]]}


def test_127_dns_rebinding_one_lookup_and_that_address(lab: Lab) -> None:
    outcome = lab.run(Job("http://rebind.test/", REBINDING))
    assert outcome.ok.body == PUBLIC.encode() and outcome.lookups == ["rebind.test"] and outcome.reached == [PUBLIC]


def test_127_a_second_hop_is_looked_up_and_judged_again(lab: Lab) -> None:
    outcome = lab.run(Job("http://rebind.test/redirect?to=/again", REBINDING))
    assert outcome.code == D and outcome.lookups == ["rebind.test"] * 2 and outcome.reached == [PUBLIC]


def test_127_control_unguarded_the_second_answer_is_reached(lab: Lab) -> None:
    assert lab.run(Job("http://rebind.test/", REBINDING, guarded=False)).reached == ["127.0.0.1"]


@pytest.mark.parametrize("answers", [["127.0.0.1", PUBLIC], [PUBLIC, "127.0.0.1"], ["::1", "10.1.2.3", PUBLIC]])
def test_128_mixed_answers_never_the_private_one(lab: Lab, answers: list[str]) -> None:
    outcome = lab.run(Job("http://mixed.test/", {"mixed.test": [answers]}))
    assert outcome.reached == [PUBLIC] and outcome.ok.body == PUBLIC.encode()


@pytest.mark.parametrize("answers", [["203.0.115.1", "127.0.0.1"], ["127.0.0.1", "2606:2800::dead"]])
def test_128_the_private_one_is_no_way_out_when_the_public_one_fails(lab: Lab, answers: list[str]) -> None:
    outcome = lab.run(Job("http://mixed.test/", {"mixed.test": [answers]}))
    assert (outcome.code, outcome.reason) == (E, "NETWORK") and outcome.connections == []


def test_128_control_allowed_the_private_one_is_reached(lab: Lab) -> None:
    job = Job("http://mixed.test/", {"mixed.test": [["127.0.0.1", PUBLIC]]}, allow_addresses=["127.0.0.0/8"])
    assert lab.run(job).reached == ["127.0.0.1"]


ALLOWED = ["site.test", "*.wide.test"]
EVERYWHERE = (
    "site.test",
    "evilsite.test",
    "site.test.evil.test",
    "a.site.test",
    "wide.test",
    "evilwide.test",
    "a.wide.test",
)
HOSTS = {name: [[PUBLIC]] for name in EVERYWHERE}


@pytest.mark.parametrize(
    "host",
    ["evilsite.test", "site.test.evil.test", "a.site.test", "wide.test", "evilwide.test", "site.test\0.evil.test",
     "evil.test\0.wide.test", PUBLIC],
)  # fmt: skip
def test_129_an_allow_list_compares_labels(lab: Lab, host: str) -> None:
    outcome = lab.run(Job(f"http://{host}/", HOSTS, allow_hosts=ALLOWED))
    assert outcome.code == D and outcome.connections == [] and outcome.lookups == []


@pytest.mark.parametrize(
    "host", ["evilsite.test", "site.test.evil.test", "a.site.test", "wide.test", "evilwide.test", PUBLIC]
)
def test_129_control_without_the_list_it_is_reached(lab: Lab, host: str) -> None:
    assert lab.run(Job(f"http://{host}/", HOSTS)).reached == [PUBLIC]


@pytest.mark.parametrize("host", ["site.test", "SITE.TEST", "a.wide.test"])
def test_129_neighbour_what_is_on_the_list_is_reached(lab: Lab, host: str) -> None:
    assert lab.run(Job(f"http://{host}/", HOSTS, allow_hosts=ALLOWED)).reached == [PUBLIC]


def test_129_an_empty_list_allows_nothing(lab: Lab) -> None:
    assert lab.run(Job("http://site.test/", HOSTS, allow_hosts=[])).code == D


@pytest.mark.parametrize(
    "url", ["http://site.test/\r\nX: y", "http://site.test\r\n/", "http://site.test/?\nx", "http://site.test/\0"]
)
def test_130_line_breaks_in_a_url(lab: Lab, url: str) -> None:
    outcome = lab.run(Job(url, SITE))
    assert outcome.code == A and outcome.connections == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", "a\r\nY: b"), ("X", "a\nb"), ("X", "a\0b"), ("X", "\u2028"), ("X\r\nY", "b"), ("X Y", "b"), ("", "b"), ("X:", "b"),
        ("Host", "127.0.0.1"), ("content-length", "5"), ("Transfer-Encoding", "chunked"), ("Connection", "keep-alive"),
        ("Proxy-Authorization", "x"), ("Accept-Encoding", "br"), ("Upgrade", "h2c"), ("Expect", "100-continue"),
    ],
)  # fmt: skip
def test_130_headers_that_are_not_the_caller_s(lab: Lab, name: str, value: str) -> None:
    outcome = lab.run(Job("http://site.test/echo", SITE, headers={name: value}))
    assert outcome.code == A and outcome.connections == []
    assert "127.0.0.1" not in outcome.message


def test_130_neighbour_percent_signs_and_plain_headers_go_through(lab: Lab) -> None:
    outcome = lab.run(
        Job("http://site.test/echo?a=%0d%0aX:%20y", SITE, headers={"X-Key": "a b\té", "User-Agent": "mine"})
    )
    sent = json.loads(outcome.ok.body)
    assert sent["x-key"] == "a b\té" and sent["user-agent"] == "mine" and "x" not in sent
    assert outcome.requests[0].line == "GET /echo?a=%0d%0aX:%20y HTTP/1.1"


def test_130_other_methods_are_refused_and_head_works(lab: Lab) -> None:
    assert lab.run(Job("http://site.test/", SITE, method="POST")).code == A  # type: ignore[arg-type]
    outcome = lab.run(Job("http://site.test/packed?name=gzip", SITE, method="HEAD"))
    assert outcome.ok.status == 200 and outcome.ok.body == b"" and outcome.requests[0].line.startswith("HEAD ")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.slow
def test_131_a_bomb_is_cut(lab: Lab, coding: str) -> None:
    outcome = lab.run(Job(f"http://site.test/bomb?coding={coding}", SITE, max_bytes=5 << 20))
    assert outcome.ok.truncated and outcome.ok.body == bytes(5 << 20)


@pytest.mark.parametrize("page", ["bomb?coding=gzip", "bomb?coding=deflate", "minus", "endless"])
@pytest.mark.slow
def test_131_132_memory_stays_near_the_limit(lab: Lab, page: str) -> None:
    outcome = lab.run(Job(f"http://site.test/{page}", SITE, max_bytes=1 << 20, measure=True))
    assert outcome.peak < 20 << 20  # one packed chunk alone holds more than three times that


def test_131_a_body_that_unpacks_to_nothing_for_ever_is_ended(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/hollow", SITE, max_bytes=1000, timeout=WIDE))
    assert (outcome.code, outcome.reason, outcome.timed_out) == (E, "REMOTE", False)


@pytest.mark.slow
def test_131_control_unguarded_the_bomb_goes_on(lab: Lab) -> None:
    outcome = lab.run(Job(f"http://{PUBLIC}/bomb?coding=gzip", guarded=False, follow=True, max_bytes=100_000))
    assert len(outcome.ok.body) == 100_000  # packed: a hundred megabytes


@pytest.mark.parametrize("name", PACKED)
def test_131_neighbour_packed_bodies_are_read(lab: Lab, name: str) -> None:
    outcome = lab.run(Job(f"http://site.test/packed?name={name}", SITE, max_bytes=len(DOCUMENT)))
    assert outcome.ok.body == DOCUMENT and not outcome.ok.truncated
    assert outcome.requests[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("size", [0, 1, 100, len(DOCUMENT) - 1])
def test_131_every_coding_is_cut_at_the_same_byte(lab: Lab, size: int) -> None:
    for name in PACKED:
        outcome = lab.run(Job(f"http://site.test/packed?name={name}", SITE, max_bytes=size))
        assert outcome.ok.body == DOCUMENT[:size] and outcome.ok.truncated, name


def test_132_an_endless_body_is_cut_by_size(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/endless", SITE, max_bytes=1 << 20))
    assert outcome.ok.truncated and outcome.ok.body == b"x" * (1 << 20)


@pytest.mark.parametrize("page", ["minus", "interims"])
def test_132_endless_framing_is_ended_by_size(lab: Lab, page: str) -> None:
    outcome = lab.run(Job(f"http://site.test/{page}", SITE, max_bytes=1 << 20, timeout=WIDE))
    assert (outcome.code, outcome.reason, outcome.timed_out) == (E, "REMOTE", False)


def test_132_endless_trailers_are_ended_by_size(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/trailers", SITE, max_bytes=1000, timeout=WIDE))
    assert (outcome.code, outcome.reason, outcome.timed_out) == (E, "REMOTE", False)


@pytest.mark.parametrize("page", ["drip", "drip?head=1", "silent"])
@pytest.mark.slow
def test_132_a_dripping_answer_is_ended_by_the_deadline(lab: Lab, page: str) -> None:
    before = time.monotonic()
    outcome = lab.run(Job(f"http://site.test/{page}", SITE, timeout=0.5))
    assert (outcome.code, outcome.reason, outcome.timed_out) == (E, "NETWORK", True)
    assert time.monotonic() - before < WIDE


@pytest.mark.parametrize("page", ["drip", "silent"])
@pytest.mark.slow
def test_132_a_dripping_answer_is_ended_by_the_caller(lab: Lab, page: str) -> None:
    assert lab.run(Job(f"http://site.test/{page}", SITE, cancel_at_check=12)).code == "TOOL_CANCELLED"


@pytest.mark.slow
def test_132_neighbour_a_slow_answer_in_time_is_read(lab: Lab) -> None:
    assert lab.run(Job("http://site.test/drip?count=20", SITE, timeout=WIDE)).ok.body == b"x" * 20


PROXIES = dict.fromkeys(("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"), "http://127.0.0.1:80")


def test_133_proxy_variables_are_ignored(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/", SITE, environment=PROXIES))
    assert outcome.reached == [PUBLIC] and outcome.requests[0].line == "GET / HTTP/1.1"


def test_133_control_unguarded_they_are_used(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/", guarded=False, follow=True, environment=PROXIES))
    assert outcome.reached == ["127.0.0.1"] and outcome.requests[0].line == "GET http://site.test/ HTTP/1.1"


SECRETS = {"Authorization": "Bearer secret", "Cookie": "a=secret", "X-Api-Key": "secret", "Accept-Language": "de"}


def test_134_credentials_and_cookies_stay_with_their_origin(lab: Lab) -> None:
    back = "http://other.test/redirect?to=http://site.test/echo"
    outcome = lab.run(Job(f"http://site.test/redirect?to={back}", SITE, headers=SECRETS))
    first, *others = outcome.requests
    assert first.headers["authorization"] == "Bearer secret" and len(others) == 2
    for request in others:
        assert (
            "secret" not in str(request)
            and request.headers["accept-language"] == "de"
            and "referer" not in request.headers
        )


def test_134_neighbour_they_follow_inside_the_origin_but_no_cookie_is_kept(lab: Lab) -> None:
    outcome = lab.run(Job("http://site.test/redirect?to=/echo", SITE, headers={"Authorization": "Bearer secret"}))
    assert (
        outcome.requests[1].headers["authorization"] == "Bearer secret" and "cookie" not in outcome.requests[1].headers
    )


def test_134_control_unguarded_they_are_sent_along(lab: Lab) -> None:
    url = f"http://{PUBLIC}/redirect?to=http://{OTHER_PUBLIC}/echo"
    assert "secret" in str(lab.run(Job(url, guarded=False, follow=True, headers=SECRETS)).requests[1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("latin-1", "Käse"),
        ("wrong-charset", "Käse\ufffd"),
        ("no-such-charset", "Käse\ufffd"),
        ("utf-16", "Käse"),
        ("until-close", "five."),
        ("binary", bytes(range(128)).decode() + "\ufffd" * 128),
    ],
)
def test_135_every_body_has_a_defined_text(lab: Lab, name: str, text: str) -> None:
    response = lab.run(Job(f"http://site.test/raw?name={name}", SITE)).ok
    assert response.body == RAW[name].partition(b"\r\n\r\n")[2] and response.text() == text


def answer(body: bytes, content_type: str = "text/html", *, truncated: bool = False) -> Response:
    return Response("http://site.test/", "http://site.test/", 200, (), content_type, body, truncated, ())


@pytest.mark.parametrize(
    ("body", "content_type", "declared", "text"),
    [
        (b"K\xe4se", "text/html", "iso-8859-1", "Käse"),
        (b"K\xe4se", "text/html; charset=windows-1252", "utf-8", "Käse"),
        (b"K\xc3\xa4se", "text/html; charset=nonsense", "utf-8", "Käse"),
        (b"K\xc3\xa4se", "text/html", "nonsense", "Käse"),
        (b"\xef\xbb\xbfK\xc3\xa4se", "text/html; charset=latin1", "koi8-r", "Käse"),
        # Browsers read these as the larger sets that authors mean.
        (b"\x93quoted\x94 \x80", "text/html; charset=iso-8859-1", "", "“quoted” €"),
        (b"\x93quoted\x94", "text/html; charset=us-ascii", "", "“quoted”"),
        ("①".encode("cp932"), "text/html; charset=Shift_JIS", "", "①"),
        ("囧".encode("gb18030"), "text/html; charset=gb2312", "", "囧"),
        ("똠".encode("cp949"), "text/html; charset=euc-kr", "", "똠"),
        ("Käse".encode("utf-16-le"), "text/html; charset=utf-16", "", "Käse"),
        ("Käse".encode("utf-16-be"), "text/html; charset=utf-16be", "", "Käse"),
        (b"\x81\xff\x00", "text/html; charset=windows-1252", "", "\ufffdÿ\x00"),
    ],
)
def test_135_charsets(body: bytes, content_type: str, declared: str, text: str) -> None:
    assert answer(body, content_type).text(declared) == text


@pytest.mark.parametrize(
    "charset", ["utf-8", "utf-16le", "gb18030", "shift_jis", "euc-kr", "big5", "euc-jp", "iso-2022-jp"]
)
def test_135_a_cut_body_does_not_end_in_half_a_character(charset: str) -> None:
    text = "日本日本"
    body = text.encode(charset)
    for length in range(len(body)):
        seen = answer(body[:length], f"text/plain; charset={charset}", truncated=True).text()
        assert text.startswith(seen) and "\ufffd" not in seen
    assert answer(body[:-1], f"text/plain; charset={charset}").text() != text, (
        "a whole body that ends so is no proper text"
    )


BROKEN = [*RAW][: [*RAW].index("bad-location")]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_http_is_the_remote_s_failure(lab: Lab, name: str) -> None:
    outcome = lab.run(Job(f"http://site.test/raw?name={name}", SITE))
    assert (outcome.code, outcome.reason) == (E, "REMOTE")
    assert PUBLIC not in outcome.message


@pytest.mark.parametrize("name", ["until-close", "interim", "chunked", "folded"])
def test_neighbour_unusual_but_proper_http_is_read(lab: Lab, name: str) -> None:
    response = lab.run(Job(f"http://site.test/raw?name={name}", SITE)).ok
    assert response.status == 200 and response.body == b"five."
    assert name != "folded" or ("x-folded", "a b") in response.headers


@pytest.mark.parametrize("status", [204, 404, 418, 500, 304, 300])
def test_an_error_status_is_a_result(lab: Lab, status: int) -> None:
    assert lab.run(Job(f"http://site.test/plain?status={status}", SITE)).ok.status == status


def assert_network_failure(outcome: Outcome) -> None:
    assert (outcome.code, outcome.reason, outcome.timed_out) == (E, "NETWORK", False), outcome
    assert not any(inside in outcome.message for inside in (PUBLIC, "10.1.2.3", "203.0.115.1"))


def test_what_goes_wrong_on_the_way_names_the_host_only(lab: Lab) -> None:
    names = {**SITE, "far.test": [["203.0.115.1"]]}
    for url in ("http://site.test:81/", "http://far.test/", "http://unknown.test/", "http://site.test/cut"):
        assert_network_failure(lab.run(Job(url, names)))


@pytest.mark.usefixtures("tls")
class TestTls:
    def test_the_name_is_checked_and_sent(self, lab: Lab) -> None:
        outcome = lab.run(Job("https://site.test/echo", SITE))
        assert outcome.ok.status == 200 and outcome.connections[0].port == 443
        assert outcome.requests[0].headers["host"] == "site.test"

    def test_an_address_in_the_certificate(self, lab: Lab) -> None:
        assert lab.run(Job(f"https://{PUBLIC}/")).ok.body == PUBLIC.encode()

    def test_a_body_of_many_records(self, lab: Lab) -> None:
        assert lab.run(Job("https://site.test/endless", SITE, max_bytes=1 << 20)).ok.body == b"x" * (1 << 20)
        assert lab.run(Job("https://site.test/raw?name=until-close", SITE)).ok.body == b"five."

    @pytest.mark.parametrize("host", ["other.test", "rogue.test", "sub.site.test"])
    def test_a_certificate_for_another_name_or_of_another_authority(self, lab: Lab, host: str) -> None:
        outcome = lab.run(Job(f"https://{host}/", {host: [[PUBLIC]]}))
        assert_network_failure(outcome)
        assert outcome.requests == []

    def test_no_tls_on_the_other_side(self, lab: Lab) -> None:
        assert_network_failure(lab.run(Job("https://site.test:80/", SITE)))

    def test_a_body_that_may_have_been_cut_on_the_way_is_none(self, lab: Lab) -> None:
        assert_network_failure(lab.run(Job("https://site.test/ragged", SITE)))
        assert lab.run(Job("http://site.test/ragged", SITE)).ok.body == b"half"  # nothing can tell there

    def test_a_dripping_body_is_ended_by_the_deadline(self, lab: Lab) -> None:
        assert lab.run(Job("https://site.test/drip", SITE, timeout=0.5)).timed_out

    def test_a_redirect_down_to_http_is_refused_and_one_up_is_not(self, lab: Lab) -> None:
        down = lab.run(Job("https://site.test/redirect?to=http://site.test/", SITE))
        assert down.code == D and len(down.connections) == 1
        up = lab.run(Job("http://site.test/redirect?to=https://site.test/echo", SITE, headers=SECRETS))
        assert up.ok.final_url == "https://site.test/echo" and "secret" not in str(up.requests[1])

    def test_rebinding_does_not_help_a_server_of_another_name(self, lab: Lab) -> None:
        outcome = lab.run(Job("https://inside.test/", {"inside.test": [["127.0.0.1"]]}))
        assert outcome.code == D and outcome.connections == []
