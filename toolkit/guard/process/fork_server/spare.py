"""A spare supervisor: a process in namespaces of its own that waits for the command it will run.

It has nothing of a command before it, and ends with the fork server: the kernel kills it, and its socket ends.
"""

from __future__ import annotations

import array
import os
import socket
from typing import Final

_DESCRIPTORS: Final = 5  # as they come to the fork server, see ``server.py``


class Spare:
    """The fork server's side of it."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel

    def hand_over(self, descriptors: list[int]) -> bool:
        """Send it the descriptors of a command, once; False if it was killed. Then it is gone when this returns."""
        with self._channel:
            try:
                self._channel.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])
            except OSError:
                self._channel.close()  # whatever else was wrong, it ends by this
                os.waitpid(self.pid, 0)
                return False
        return True


def take_request(channel: socket.socket) -> list[int]:
    """In the spare process: wait for the descriptors of a command. Exits if the fork server is gone."""
    with channel:
        message, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(_DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC)
    if not message or not ancillary:
        os._exit(1)
    return memoryview(ancillary[0][2]).cast("i").tolist()
