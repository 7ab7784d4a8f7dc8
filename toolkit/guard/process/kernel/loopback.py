"""The loopback interface of a command's own network. The supervisor calls this before it restricts itself.

A supervisor inside bubblewrap is started for each command, so what it may not need is imported late, and ``_socket``
instead of ``socket``, which takes as long to load as all the rest.

Promise: the interface belongs to the network namespace of the calling process, which has no other one that is up. What
listens on it is reached only from inside, and through descriptors that were handed out.
"""

from __future__ import annotations

import struct
from typing import Final

PROXY_PORT: Final = 3128
"""Where commands with the guarded network find their proxy."""

_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_UP: Final = 1
_BACKLOG: Final = 128


def bring_up() -> None:
    """Bring the loopback interface up; the kernel then gives it 127.0.0.1 and ::1."""
    import fcntl
    from _socket import AF_INET, SOCK_DGRAM, socket

    control = socket(AF_INET, SOCK_DGRAM)
    try:
        fcntl.ioctl(control.fileno(), _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
    finally:
        control.close()


def hand_out_listener(client: int) -> None:
    """Listen for the command's proxy, and send the listening socket to the caller, who serves it from outside."""
    from _socket import AF_INET, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

    listener, connection = socket(AF_INET, SOCK_STREAM), socket(fileno=client)
    try:
        listener.bind(("127.0.0.1", PROXY_PORT))
        listener.listen(_BACKLOG)
        descriptor = struct.pack("i", listener.fileno())
        connection.sendmsg([b"listener 0 "], [(SOL_SOCKET, SCM_RIGHTS, descriptor)])
    finally:
        connection.detach()
        listener.close()
