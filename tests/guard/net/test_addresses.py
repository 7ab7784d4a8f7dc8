"""The table of addresses: what is public, what carries an IPv4 address inside, what can be allowed."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import SetupError
from toolkit.guard import AddressRules
from toolkit.guard.network.hosts import METADATA, embedded_addresses, parse_address

# Number of the attack list -> addresses; first and last ones of a network where it has an edge.
REFUSED: dict[int, tuple[str, ...]] = {
    115: ("127.0.0.1", "127.8.9.1", "127.255.255.255", "::1"),
    116: ("0.0.0.0", "0.255.255.255", "::"),
    118: ("::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"),
    119: (
        "::127.0.0.1", "::8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::7f00:1", "64:ff9b:1:ffff::1",
        "2002:7f00:1::", "2002:808:808::1", "2001::1", "2001:0:808:808::f7f7:f7f7", "::ffff:0:127.0.0.1",
        "::ffff:0:8.8.8.8", "2606:2800::5efe:127.0.0.1", "2606:2800::200:5efe:10.0.0.1",
    ),
    120: (
        "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "168.63.129.16",
        "100.100.100.200", "192.0.0.192", "169.254.170.2", "2606:2800::5efe:168.63.129.16",
    ),
    121: (
        "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255",
        "100.64.0.0", "100.127.255.255", "169.254.0.0", "169.254.255.255", "224.0.0.0", "239.255.255.255",
        "240.0.0.0", "255.255.255.254", "255.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.1", "198.51.100.1",
        "203.0.113.255", "198.18.0.0", "198.19.255.255", "192.88.99.1",
        "fe80::1", "febf::1", "fec0::1", "feff::1", "fc00::", "fdff::1", "ff02::1", "ff0e::1", "100::1", "2001:2::1",
        "2001:10::1", "2001:1f::1", "2001:20::1", "2001:2f::1", "2001:1ff::1", "2001:db8::1", "3fff::1", "3fff:fff::1",
        "5f00::1", "4000::1", "1fff:ffff::1", "e000::1",
    ),
}  # fmt: skip

PUBLIC = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.1",
    "192.88.100.1", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.1", "203.0.112.1",
    "203.0.114.10", "223.255.255.255", "168.63.129.15",
    "2001:200::1", "2001:4860:4860::8888", "2001:db7::1", "2001:db9::1", "2003::1", "2606:2800:220:1::10", "2a00:1450::1",
    "3ffe:ffff::1", "3fff:1000::1", "2606:2800::5efe:8.8.8.8",
)  # fmt: skip


def permits(text: str, *allowed: str) -> bool:
    address = parse_address(text)
    assert address is not None
    return AddressRules(allowed).permits(address)


@pytest.mark.every_row
@pytest.mark.parametrize(("number", "text"), [(number, text) for number, texts in REFUSED.items() for text in texts])
def test_not_public(number: int, text: str) -> None:
    assert not permits(text)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_neighbours(text: str) -> None:
    assert permits(text)


@pytest.mark.parametrize(("number", "text"), [(number, text) for number, texts in REFUSED.items() for text in texts])
def test_control_each_can_be_allowed_by_name(number: int, text: str) -> None:
    address = ipaddress.ip_address(text)
    assert permits(text, text, *map(str, embedded_addresses(address)))


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("8.8.8.8", []),
        ("2606:2800:220:1::10", []),
        ("::ffff:127.0.0.1", ["127.0.0.1"]),
        ("::", []),
        ("::1", []),
        ("::127.0.0.1", ["127.0.0.1"]),
        ("::ffff:0:127.0.0.1", ["127.0.0.1"]),
        ("64:ff9b::7f00:1", ["127.0.0.1"]),
        ("64:ff9b:1::7f00:1", ["127.0.0.1"]),
        ("2002:7f00:1::8", ["127.0.0.1"]),
        ("2001:0:a00:1::80ff:fffe", ["10.0.0.1", "127.0.0.1"]),
        ("2606:2800::5efe:7f00:1", ["127.0.0.1"]),
        ("2606:2800::200:5efe:7f00:1", ["127.0.0.1"]),
    ],
)
def test_embedded(text: str, inner: list[str]) -> None:
    assert list(map(str, embedded_addresses(ipaddress.ip_address(text)))) == inner


def test_an_allowed_network_opens_what_lies_in_it_and_no_more() -> None:
    assert permits("10.1.255.255", "10.1.0.0/16") and not permits("10.2.0.0", "10.1.0.0/16")
    assert permits("fd12::1", "fd12::/16") and not permits("fd13::1", "fd12::/16")
    assert permits("127.0.0.1", "127.0.0.1") and not permits("127.0.0.2", "127.0.0.1")
    assert not permits("::ffff:127.0.0.1", "127.0.0.0/8")


def test_what_a_nat64_address_carries_is_judged_although_the_prefix_is_allowed() -> None:
    assert permits("64:ff9b::808:808", "64:ff9b::/96")
    assert not permits("64:ff9b::7f00:1", "64:ff9b::/96")
    assert not permits("64:ff9b::a9fe:a9fe", "64:ff9b::/96", "169.254.0.0/16")
    assert permits("64:ff9b::7f00:1", "64:ff9b::/96", "127.0.0.0/8")


@pytest.mark.parametrize("address", sorted(map(str, METADATA)))
def test_metadata_is_opened_by_its_own_name_only(address: str) -> None:
    assert not permits(address)
    assert not permits(address, "0.0.0.0/0", "::/0")
    assert permits(address, address)
    assert permits(address, str(ipaddress.ip_network(address)))


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1/8", "10.0.0.0/33", "localhost", "fe80::1%lo", "fe80::%lo/64", 10, None, b"\x0a\0\0\1"]
)
def test_what_is_no_network_is_a_mistake_of_the_set_up(text: object) -> None:
    with pytest.raises(SetupError, match="allow_addresses"):
        AddressRules([text])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "text", ["", "1", "127.1", "0177.0.0.1", "fe80::1%eth0", "1.2.3.4%x", " 1.2.3.4", "example.org"]
)
def test_what_is_no_address(text: str) -> None:
    assert parse_address(text) is None


@given(st.ip_addresses(v=6))
def test_nothing_outside_unicast_passes_and_nothing_raises(address: ipaddress.IPv6Address) -> None:
    assert not AddressRules().permits(address) or int(address) >> 125 == 1
