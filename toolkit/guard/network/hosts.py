"""Where a tool may connect to: URLs, host names and addresses, and the settings they are compared with (``Network``).

Every text is either read in exactly one way or refused, so what is checked is what is connected to. Nothing here connects
(``connect.py`` does), and neither ``socket`` nor ``ssl`` is loaded: every toolkit has a ``Network``, but few calls use it.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolkitError

if TYPE_CHECKING:
    import ssl

# -- addresses ---------------------------------------------------------------------------------------------------------

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
AddressNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# By the registries of special addresses. ``ipaddress.is_global`` is not used: it calls ``::127.0.0.1``,
# ``64:ff9b::7f00:1`` and multicast addresses global.
_NOT_PUBLIC_V4: Final = tuple(map(ipaddress.IPv4Network, (
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
)))  # fmt: skip

# Everything outside of this is loopback, local, mapped, multicast or not assigned at all.
_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(map(ipaddress.IPv6Network, (
    "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
)))  # fmt: skip

# They return credentials to every program on the host; a wide network in ``allow_addresses`` does not allow them.
METADATA: Final = frozenset(map(ipaddress.ip_address, (
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
)))  # fmt: skip

# Networks whose last four bytes are an IPv4 address that a gateway or the kernel connects to.
_EMBEDDING: Final = tuple(map(ipaddress.IPv6Network, (
    "::/96",  # compatible
    "::ffff:0:0/96",  # mapped
    "::ffff:0:0:0/96",  # translated
    "64:ff9b::/96",  # NAT64
    "64:ff9b:1::/48",  # NAT64, local use
)))  # fmt: skip
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


# -- hosts and URLs ----------------------------------------------------------------------------------------------------

MAX_URL: Final = 8192
_MAX_HOST: Final = 253

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.ASCII | re.IGNORECASE)
# NUL is not included: in a host it is a known way around a comparison and gets its own error.
_UNSAFE: Final = re.compile(r"[\x01-\x20\x7f-\x9f\\\ud800-\udfff]")
_AUTHORITY: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?", re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# With such a last label, system resolvers read the whole name as an IPv4 address (0x7f.1, 127.1, 2130706433).
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PORTS: Final = {"http": 80, "https": 443}
# Allowed unchanged in a path and query; everything else is percent-encoded.
_TARGET_SAFE: Final = "!$%&'()*+,-./:;=?@[]_~"
_ENCODED: Final = re.compile(rf"[A-Za-z0-9{re.escape(_TARGET_SAFE)}]*", re.ASCII)
_END_OF_HOST: Final = re.compile("[/?]")


@dataclass(frozen=True, slots=True)
class Host:
    """A host name in lower case and ASCII (IDNA), or an address in its canonical form.

    Promise (of ``parse``): an IPv4 address is four plain decimal numbers, and an IPv6 address is in brackets without a zone.
    Any other spelling that a resolver might read as an address is refused.
    Limits: a final dot is refused, although DNS allows it. So are letters that IDNA 2003 replaces (``ß``), because browsers
    go to another host with them.
    """

    text: str
    address: Address | None = None

    @classmethod
    @functools.lru_cache(256)  # most hosts occur again
    def parse(cls, text: str) -> Host:
        """Read a host as it is written in a URL.

        >>> Host.parse("Bücher.Example").text, Host.parse("[2606:2800:0:0::1]").text
        ('xn--bcher-kva.example', '2606:2800::1')
        """
        if text.startswith("["):
            return cls._address(text[1:-1] if text.endswith("]") else "", 6)
        if len(text) > _MAX_HOST:
            raise _host_error()
        labels = [_ascii_label(label) for label in text.lower().split(".")]
        name = ".".join(labels)
        if _NUMBER.fullmatch(labels[-1]):
            return cls._address(name, 4)
        if len(name) > _MAX_HOST:
            raise _host_error()
        return cls(name)

    @classmethod
    def _address(cls, text: str, version: int) -> Host:
        address = parse_address(text) if text.isascii() else None
        if address is None or address.version != version:
            raise SandboxViolation("the host is an unusual spelling of an address; write a plain address or a name")
        return cls(str(address), address)

    @property
    def is_this_machine(self) -> bool:
        """Whether it is the loopback by its spelling: what is sent there stays on this machine.

        >>> Host.parse("localhost").is_this_machine, Host.parse("10.0.0.1").is_this_machine
        (True, False)
        """
        return self.text == "localhost" if self.address is None else self.address.is_loopback

    @property
    def bracketed(self) -> str:
        """The host as it is written in a URL and a Host header."""
        return f"[{self.text}]" if ":" in self.text else self.text


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A host, or with ``*.`` before it every name below it but not the host itself. Compared label by label."""

    host: Host
    below: bool = False

    @classmethod
    def parse(cls, text: object) -> HostPattern:
        """Read a pattern; ``SetupError`` if it is not one.

        >>> HostPattern.parse("*.example.org").matches(Host.parse("evilexample.org"))
        False
        """
        if not isinstance(text, str):
            raise SetupError(f"a host pattern must be a string, not {type(text).__name__}")
        below = text.startswith("*.")
        try:
            host = Host.parse(text[2:] if below else text)
        except ToolkitError as error:
            raise SetupError(
                f"host pattern {text!r}: {error.message}; write 'example.org' or '*.example.org'"
            ) from None
        if below and host.address is not None:
            raise SetupError(f"host pattern {text!r}: an address has no names below it; write the address alone")
        return cls(host, below)

    def matches(self, host: Host) -> bool:
        if not self.below:
            return host == self.host
        return host.address is None and host.text.endswith(self.suffix)

    @property
    def suffix(self) -> str:
        """The end of the names below the host; the dot keeps labels whole."""
        return f".{self.host.text}"


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https URL in parts. ``target`` is path and query in ASCII; the fragment is left out.

    Promise (of ``parse``): no credentials, control characters, spaces or backslashes; a host as ``Host`` promises; nothing
    in ``target`` that could end a request line. Limit: ``..`` in a path is left to the server.
    """

    scheme: str
    host: Host
    port: int
    target: str

    @classmethod
    def parse(cls, text: object) -> Url:
        """Read a URL: ``InvalidArguments`` if it is malformed, ``SandboxViolation`` if no call may use it."""
        if not isinstance(text, str):
            raise InvalidArguments(f"a URL must be a string, not {type(text).__name__}")
        if len(text) > MAX_URL:
            raise InvalidArguments(f"a URL must not be longer than {MAX_URL} characters")
        return cls._read(text)

    @classmethod
    @functools.lru_cache(16)  # the policy reads the URL of a call first, then the network does
    def _read(cls, text: str) -> Url:
        scheme, rest = _split_scheme(text)
        _refuse_unsafe(rest)
        if not rest.startswith("//"):
            raise InvalidArguments(f"'{scheme}:' must be followed by two slashes and a host")
        authority, target = _split_authority(rest.removeprefix("//").partition("#")[0])
        host, port = _split_port(authority)
        return cls(scheme, Host.parse(host), _PORTS[scheme] if port is None else port, _encode_target(target))

    def join(self, reference: str) -> Url:
        """The URL that a reference (a ``Location`` header) leads to, parsed again as a whole."""
        if _SCHEME.match(reference):
            return Url.parse(reference)
        _refuse_unsafe(reference)  # urljoin would silently remove some of these characters
        try:
            return Url.parse(urllib.parse.urljoin(self.text, reference))
        except ValueError:
            raise InvalidArguments("the reference is not a URL") from None

    @property
    def authority(self) -> str:
        """The host, and the port if it is not the scheme's default."""
        return self.host.bracketed if self.port == _PORTS[self.scheme] else f"{self.host.bracketed}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port; credentials belong to one origin."""
        return f"{self.scheme}://{self.authority}"

    @property
    def text(self) -> str:
        """The whole URL in its canonical form."""
        return f"{self.origin}{self.target}"


def _refuse_unsafe(text: str) -> None:
    if _UNSAFE.search(text):
        raise InvalidArguments("a URL must not contain spaces, control characters, backslashes or lone surrogates")


def _split_scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    if found is None:
        raise InvalidArguments("a URL must begin with http:// or https://")
    scheme = found[1].lower()
    if scheme not in _PORTS:
        raise SandboxViolation("only http and https URLs may be fetched")
    return scheme, text[found.end() :]


def _split_authority(text: str) -> tuple[str, str]:
    found = _END_OF_HOST.search(text)
    end = found.start() if found else len(text)
    return text[:end], text[end:]


def _split_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise InvalidArguments("a URL must not contain a user name or password")
    found = _AUTHORITY.fullmatch(authority)
    if found is None or not found[1]:
        raise InvalidArguments("a URL must contain a host, and after a colon only a port number")
    port = None if found[2] is None else int(found[2])
    if port is not None and not 1 <= port <= 65535:
        raise InvalidArguments("a port must be between 1 and 65535")
    return found[1], port


def _encode_target(text: str) -> str:
    if "\0" in text:
        raise InvalidArguments("a URL must not contain a NUL character")
    quoted = text if _ENCODED.fullmatch(text) else urllib.parse.quote(text, safe=_TARGET_SAFE)
    return quoted if quoted.startswith("/") else f"/{quoted}"


def _ascii_label(label: str) -> str:
    """One label as DNS has it. Refused if it is not a label, or if decoding it again returns another one."""
    if not label.isascii():
        # Dots of other scripts are not letters; circled and full-width digits decode to other characters.
        if not all(letter == "-" or unicodedata.category(letter)[0] in "LMN" for letter in label):
            raise _host_error()
        try:
            encoded = label.encode("idna")
            if encoded.decode("idna") != label:
                raise _host_error()
        except UnicodeError:
            raise _host_error() from None
        label = encoded.decode("ascii")
    if not _LABEL.fullmatch(label):
        raise _host_error()
    return label


def _host_error() -> SandboxViolation:
    return SandboxViolation("the host is not a valid name or address")


# -- settings ----------------------------------------------------------------------------------------------------------

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]


def system_resolve(host: str, port: int) -> Sequence[str]:
    """One lookup by the system: all addresses of ``host``, in the order that the system prefers."""
    import socket

    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True)
class Network:
    """What may be reached. Immutable; a mistake in the settings is a ``SetupError`` here.

    ``allow_hosts``: None for every host, else the only allowed hosts; an empty list allows nothing. ``deny_hosts`` takes
    precedence. Both contain names (``example.org``), patterns for the names below one (``*.example.org``) or addresses as in
    a URL; a denied address is also denied when a name resolves to it. ``allow_addresses``: networks that may be reached
    although they are not public, for a service of your own; metadata addresses must be listed one by one.
    ``resolve(host, port)``: returns addresses as text, which are checked like those of the system's lookup. ``tls``: a
    context that checks certificates and host names; by default with the system's certificate authorities.

    Promise: a host is checked by its parsed labels, an address by ``AddressRules``, and both must pass.
    Limit: with ``allow_addresses`` and no ``allow_hosts``, any name that resolves to such an address may be used.
    """

    allow_hosts: Sequence[str] | None = None
    deny_hosts: Sequence[str] = ()
    allow_addresses: Sequence[str] = ()
    resolve: Resolve = field(default=system_resolve, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    _allowed: tuple[HostPattern, ...] | None = field(init=False, repr=False, compare=False)
    _denied: tuple[HostPattern, ...] = field(init=False, repr=False, compare=False)
    _addresses: AddressRules = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("allow_hosts", "deny_hosts", "allow_addresses"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise SetupError(f"{name} must be a list: write {name}=[{value!r}]")
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        if self.tls is not None and not (self.tls.check_hostname and self.tls.verify_mode.name == "CERT_REQUIRED"):
            raise SetupError("tls must check certificates and host names; load your own certificate authority instead")
        allowed = None if self.allow_hosts is None else tuple(map(HostPattern.parse, self.allow_hosts))
        object.__setattr__(self, "_allowed", allowed)
        object.__setattr__(self, "_denied", tuple(map(HostPattern.parse, self.deny_hosts)))
        object.__setattr__(self, "_addresses", AddressRules(self.allow_addresses))

    @cached_property
    def context(self) -> ssl.SSLContext:
        """The TLS context. Loading the system's authorities is slow, so it is done once, on first use."""
        import ssl

        return self.tls or ssl.create_default_context()

    def for_service(self, host: Host, *, public_only: bool = False) -> Network:
        """The network for one host that the configuration names as a service or server: only that host, wherever it is,
        including this machine; with ``public_only``, only where this network permits it.

        ``allow_hosts`` and ``deny_hosts`` still apply: if ``allow_hosts`` is a list, the host must be on it. A metadata
        address cannot be reached unless it is the host itself.
        Limit: DNS decides where the host is; over https the certificate must be valid for its name.
        """
        hosts = (host.bracketed,) if self.allow_hosts is None else self.allow_hosts
        if public_only:
            return replace(self, allow_hosts=hosts)
        named = () if host.address is None else (host.text,)
        return replace(self, allow_hosts=hosts, allow_addresses=("0.0.0.0/0", "::/0", *named))

    def judge_host(self, host: Host) -> None:
        """Raise ``SandboxViolation`` unless the lists allow this host."""
        if any(pattern.matches(host) for pattern in self._denied):
            raise SandboxViolation(f"the host '{host.text}' is denied by 'deny_hosts'")
        if self._allowed is not None and not any(pattern.matches(host) for pattern in self._allowed):
            raise SandboxViolation(f"the host '{host.text}' is not one of the allowed hosts")

    def permits(self, address: Address) -> bool:
        """Whether this address may be connected to, for a host that is allowed."""
        addresses = (address, *embedded_addresses(address))
        denied = any(pattern.host.address in addresses for pattern in self._denied)
        return not denied and self._addresses.permits(address)
