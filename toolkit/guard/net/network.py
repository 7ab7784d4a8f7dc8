"""Where a tool may connect to: the settings, and the judgement made from them.

Connecting itself is in ``dial.py``, HTTP in ``fetch.py``; this module loads neither ``socket`` nor ``ssl``, because
every toolkit has a ``Network`` and few calls use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from toolkit.errors import SandboxViolation, SetupError
from toolkit.guard.net.addresses import Address, AddressRules, embedded
from toolkit.guard.net.hosts import Host, HostPattern

if TYPE_CHECKING:
    import ssl

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]


def system_resolve(host: str, port: int) -> Sequence[str]:
    """One lookup by the system: every address of ``host``, in the order the system prefers."""
    import socket

    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True)
class Network:
    """What may be reached. Immutable; a mistake in it is a ``SetupError`` here, not a surprise later.

    ``allow_hosts``: None for every host, else the only hosts; an empty list allows nothing. ``deny_hosts`` wins over
    it. Both hold names (``example.org``), names below one (``*.example.org``) or addresses as in a URL; a denied
    address stays denied behind a name. ``allow_addresses``: networks that may be reached although they are not
    public, for a service of your own; metadata addresses only when named one by one. ``resolve(host, port)``:
    addresses as text; a lookup of yours is judged as the system's is. ``tls``: a context that checks certificates and
    host names; default, the system's authorities.

    Promise: a host passes by its parsed labels, an address by ``AddressRules``, and both must pass.
    Limit: with ``allow_addresses`` and no ``allow_hosts`` any name that resolves there may be used to get there.
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
                raise SetupError(f"{name} is a list: write {name}=[{value!r}]")
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        if self.tls is not None and not (self.tls.check_hostname and self.tls.verify_mode.name == "CERT_REQUIRED"):
            raise SetupError("tls must check certificates and host names; load an authority of your own instead")
        allowed = None if self.allow_hosts is None else tuple(map(HostPattern.parse, self.allow_hosts))
        object.__setattr__(self, "_allowed", allowed)
        object.__setattr__(self, "_denied", tuple(map(HostPattern.parse, self.deny_hosts)))
        object.__setattr__(self, "_addresses", AddressRules(self.allow_addresses))

    @cached_property
    def context(self) -> ssl.SSLContext:
        """The TLS context; loading the system's authorities takes a while, so it is done once and when needed."""
        import ssl

        return self.tls or ssl.create_default_context()

    def toward(self, host: Host) -> Network:
        """The same for one host that the set-up names as a service or server: only it, and wherever it is, this machine
        included.

        ``allow_hosts`` and ``deny_hosts`` hold as before: where a list says what may be reached, the host must be on it. A
        metadata address is still out of reach unless it is the host itself.
        Limit: who answers for the host's name decides where it is; over https the certificate must be the name's.
        """
        named = () if host.address is None else (host.text,)
        hosts = (host.bracketed,) if self.allow_hosts is None else self.allow_hosts
        return replace(self, allow_hosts=hosts, allow_addresses=("0.0.0.0/0", "::/0", *named))

    def judge_host(self, host: Host) -> None:
        """Raise ``SandboxViolation`` unless the lists let this host pass."""
        if any(pattern.matches(host) for pattern in self._denied):
            raise SandboxViolation(f"the host '{host.text}' is denied")
        if self._allowed is not None and not any(pattern.matches(host) for pattern in self._allowed):
            raise SandboxViolation(f"the host '{host.text}' is not among the allowed ones")

    def permits(self, address: Address) -> bool:
        """Whether this address may be connected to, for a host that passed."""
        meant = (address, *embedded(address))
        denied = any(pattern.host.address in meant for pattern in self._denied)
        return not denied and self._addresses.permits(address)
