"""Where to listen."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from toolkit.errors import SetupError


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port. Port 0 lets the system choose one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads ``HOST:PORT``; IPv6 addresses are written in brackets.

        >>> Address.parse("127.0.0.1:8123")
        Address(host='127.0.0.1', port=8123)
        >>> Address.parse("[::1]:0").host
        '::1'
        """
        host, colon, port = text.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise SetupError(f"{text!r} is not an address; write HOST:PORT, such as 127.0.0.1:8123")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect. Names other than localhost count as reachable."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_unspecified(self) -> bool:
        """Whether it stands for every address of this machine. No client names it so."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def shown_host(self) -> str:
        """The host as it is written in an URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def listen(self) -> socket.socket:
        """A socket that listens here."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, place = found[0]
            return socket.create_server(place[:2], family=family, backlog=128)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SetupError(
                f"{self.shown_host}:{self.port} cannot be listened on: {reason}; choose another port, or 0 for any free one"
            ) from None

    def bound_to(self, listening: socket.socket) -> Address:
        """The address with the port that the system chose."""
        return Address(self.host, listening.getsockname()[1])


LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def allowed_hosts(address: Address, others: tuple[str, ...] = ()) -> frozenset[str]:
    """The values of the Host header that are accepted: a page of another name that resolves to us has another one.

    ``others`` are names under which a proxy or a network reaches this server, with or without a port.
    """
    names = [*LOOPBACK_NAMES] if address.is_loopback else [address.shown_host]
    known = {f"{name}:{address.port}" for name in (*names, address.shown_host)}
    if address.port == 80:  # which clients leave out
        known.update(names)
    return frozenset(name.lower() for name in (*known, *others))
