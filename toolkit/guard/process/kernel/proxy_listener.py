"""Where the proxy of a command listens: on the loopback of the command's own network. The supervisor calls this before it
restricts itself.

Promise: what listens there is reached only from inside that network, and through the descriptor that was handed out.
"""

from __future__ import annotations

import struct
from typing import Final

PROXY_PORT: Final = 3128
"""Where commands with the guarded network find their proxy."""

_BACKLOG: Final = 128


def hand_out_listener(client: int) -> None:
    """Listen for the command's proxy, and send the listening socket to the caller, who serves it from outside."""
    # Late, and not ``socket``: a supervisor inside bubblewrap starts again for each command, and few have a proxy.
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
