"""What a fork of this process does with what it got from it.

In the child only the thread that forked goes on: a lock that another one held stays locked, and descriptors lead to
processes that belong to the parent. So everything that has such things says here how it starts again. The child then has
fork servers, servers and threads of its own; what belongs to the parent, it neither uses nor ends.

Nothing takes a lock before the fork (except while a spare interpreter starts): the thread waiting for the fork might hold it.
"""

from __future__ import annotations

import os
import socket
import weakref
from contextlib import suppress
from typing import Final, Literal, Protocol, TypeAlias


class Restarting(Protocol):
    """Something that lives on in the child."""

    def start_again_in_child(self) -> None:
        """Called in the child, before anything else happens there: take new locks, forget what is the parent's."""


_restarting: Final[weakref.WeakSet[Restarting]] = weakref.WeakSet()
_sockets: Final[weakref.WeakSet[socket.socket]] = weakref.WeakSet()
_pipes: Final[set[int]] = set()


def start_again_in_child(thing: Restarting) -> None:
    """From now on, every forked child calls ``thing.start_again_in_child()``."""
    _restarting.add(thing)


def open_pipe() -> tuple[int, int]:
    """A pipe that no child keeps: the reader would not see the end as long as a child has the other end open.

    Its ends are closed by ``close_pipe``.
    """
    pipe = os.pipe()
    _pipes.update(pipe)
    return pipe


def close_pipe(end: int) -> None:
    """Closes an end of such a pipe, unless this is a child: there it is closed already, and its number may be another's."""
    if end in _pipes:
        _pipes.discard(end)
        os.close(end)


def open_socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that no child keeps."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _sockets.update(pair)
    return pair


def _start_again() -> None:
    for sock in list(_sockets):
        sock.close()
    for end in _pipes:
        with suppress(OSError):
            os.close(end)
    _pipes.clear()
    for thing in list(_restarting):
        thing.start_again_in_child()


os.register_at_fork(after_in_child=_start_again)


# -- restarts ----------------------------------------------------------------------------------------------------------

# How often helper processes ended by themselves and were started again, for whoever watches this process.

Helper: TypeAlias = Literal["fork_server", "mcp_server", "program_checker"]

_counts: Final[dict[Helper, int]] = {"fork_server": 0, "mcp_server": 0, "program_checker": 0}


def count_restart(helper: Helper) -> None:
    """Called where a helper that has ended is started again. A count may be lost if two threads do so at once."""
    _counts[helper] += 1


def restarts() -> dict[Helper, int]:
    """The restarts of this process so far, by helper."""
    return dict(_counts)
