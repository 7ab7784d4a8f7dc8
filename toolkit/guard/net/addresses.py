"""Which IP addresses are public, by the registries of special addresses.

``ipaddress.is_global`` is not used: it calls ``::127.0.0.1``, ``64:ff9b::7f00:1`` and multicast addresses global.
Nothing here touches the network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from toolkit.errors import SetupError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
AddressNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_NOT_PUBLIC_V4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this host, this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by a provider's customers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast at its end
        ),
    )
)

# Everything outside of this is loopback, local, mapped, multicast or not assigned at all.
_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)

# They return credentials to every program on the host; a wide network in ``allow_addresses`` does not allow them.
METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",  # most clouds
            "fd00:ec2::254",  # the same over IPv6
            "fd20:ce::254",
            "169.254.170.2",  # credentials of a container
            "169.254.170.23",
            "fd00:ec2::23",
            "168.63.129.16",  # looks like a public address, but the host answers
            "100.100.100.200",
            "192.0.0.192",
            "169.254.42.42",
            "fd00:42::42",
            "169.254.0.23",
        ),
    )
)

# Networks whose last four bytes are an IPv4 address that a gateway or the kernel connects to.
_EMBEDDING: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "::/96",  # compatible
            "::ffff:0:0/96",  # mapped
            "::ffff:0:0:0/96",  # translated
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # NAT64, local use
        ),
    )
)
_SIX_TO_FOUR: Final = ipaddress.IPv6Network("2002::/16")
_TEREDO: Final = ipaddress.IPv6Network("2001::/32")
# The middle of an interface identifier made from an IPv4 address (ISATAP), in any network.
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


def parse_address(text: str) -> Address | None:
    """The address written as ``text``; None if it is not an address or has a zone (``fe80::1%eth0``)."""
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def embedded_addresses(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """Every IPv4 address that an IPv6 address contains in one of the standard ways.

    Limit: a NAT64 prefix that a network chose for itself looks like any other address, and below
    ``64:ff9b:1::/48`` the IPv4 address is taken from the last four bytes only.

    >>> [str(inner) for inner in embedded_addresses(ipaddress.ip_address("2002:7f00:1::"))]
    ['127.0.0.1']
    """
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    # ``::`` and ``::1`` are in the range of compatible addresses but do not mean an IPv4 address.
    if number > 1 and any(address in network for network in _EMBEDDING):
        yield _v4(number)
    if address in _SIX_TO_FOUR:
        yield _v4(number >> 80)
    if address in _TEREDO:
        yield _v4(number >> 64)
        yield _v4(~number)
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        yield _v4(number)


def _v4(number: int) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(number & 0xFFFFFFFF)


class AddressRules:
    """Permits public addresses, and others that are allowed explicitly.

    Promise: an address is permitted only if it, and every IPv4 address it contains, is public or inside one of
    ``allowed``. A metadata address is permitted only if it is listed itself, not by a network around it.
    Limit: a public address of this machine, or one that a router forwards to an internal host, counts as public.
    """

    __slots__ = ("_allowed",)

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = tuple(map(_parse_network, allowed))

    def permits(self, address: Address) -> bool:
        """Whether a connection to ``address`` may be made."""
        return all(map(self._permits_one, (address, *embedded_addresses(address))))

    def _permits_one(self, address: Address) -> bool:
        around = [network for network in self._allowed if address in network]
        if address in METADATA:
            return any(network.num_addresses == 1 for network in around)
        return bool(around) or _is_public(address)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    return address in _UNICAST_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def _parse_network(text: object) -> AddressNetwork:
    # ipaddress also accepts integers and zones, which are not meant here.
    if isinstance(text, str) and "%" not in text:
        try:
            return ipaddress.ip_network(text)
        except ValueError:
            pass
    raise SetupError(
        f"allow_addresses: {text!r} is not an address or a network without host bits such as '10.1.0.0/16'"
    )
