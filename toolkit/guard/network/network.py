"""Where a tool may connect to: the settings, and the checks made from them.

Connecting is in ``dial.py``, HTTP in ``exchange.py``. This module loads neither ``socket`` nor ``ssl``, because every
toolkit has a ``Network`` but few calls use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from toolkit.errors import SandboxViolation, SetupError
from toolkit.guard.network.hosts import Address, AddressRules, Host, HostPattern, embedded_addresses

if TYPE_CHECKING:
    import ssl

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
