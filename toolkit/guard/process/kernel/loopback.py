"""The loopback interface of a command's own network. The supervisor calls this before it restricts itself.

Promise: the interface belongs to the network namespace of the calling process, which has no other one that is up. What
listens on it is reached only from inside, and through descriptors that were handed out.
"""

from __future__ import annotations

import fcntl
import struct
from typing import Final

_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_UP: Final = 1


def bring_up() -> None:
    """Bring the loopback interface up; the kernel then gives it 127.0.0.1 and ::1."""
    # Not ``socket``, which takes as long to load as all the rest of a supervisor inside bubblewrap.
    from _socket import AF_INET, SOCK_DGRAM, socket

    control = socket(AF_INET, SOCK_DGRAM)
    try:
        fcntl.ioctl(control.fileno(), _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
    finally:
        control.close()
