"""Finding, counting and ending processes below one of ours, where no pid namespace does it.

Promise: when ``end_all`` returns, the calling process, being a subreaper, has no descendants left but those it was told
to spare: what is stopped cannot fork, what forked before is found by the next look. Inside a fence (``landlock.fence``)
one call of the kernel's kills them all at once, so that nothing can outrun it by forking. Limits: needs ``/proc``, and
the caller must stay alive; without a fence, a program that takes a new number all the time may never be found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from typing import Final

_COUNT_AT_LEAST_EVERY: Final = 1.0


def children(parent: int, spare: Collection[int] = ()) -> list[int]:
    """Every process that ``parent`` has to reap, sooner or later, without those in ``spare``."""
    return [pid for pid in _by_parent().get(parent, []) if pid not in spare]


def descendants(ancestor: int, spare: Collection[int] = ()) -> list[int]:
    """Every process whose chain of parents leads to ``ancestor``; those that ended and wait to be reaped as well.

    Those in ``spare`` are left out, and what is below them.
    """
    by_parent = _by_parent()
    found: list[int] = []
    pending = [ancestor]
    while pending:
        below = [pid for pid in by_parent.get(pending.pop(), []) if pid not in spare]
        found += below
        pending += below
    return found


class Census:
    """Whether the descendants of this process have become too many.

    They are counted one by one only when the tasks of the whole machine, a single number, have grown as if they might
    be, and once a second: others may have gone meanwhile.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._least = _tasks_of_the_machine()
        self._counted = time.monotonic()

    def exceeded(self) -> bool:
        tasks, now = _tasks_of_the_machine(), time.monotonic()
        self._least = min(self._least, tasks)
        if tasks - self._least < self._limit // 2 and now - self._counted < _COUNT_AT_LEAST_EVERY:
            return False
        self._counted = now
        return len(descendants(os.getpid())) > self._limit


def end_all(spare: Collection[int] = (), *, fenced: bool = False, group: int = 0) -> None:
    """Kill and reap everything below this process but what is in ``spare`` and below.

    ``fenced``: signals of this process reach nobody else. ``group``: a process group most of them are likely in.
    """
    own = os.getpid()
    if fenced:
        _send(-1, signal.SIGKILL)
    elif group:
        _send(-group, signal.SIGKILL)
    while _has_children():  # orphans come to a subreaper, so without children there are no descendants
        stopped: set[int] = set()
        while new := set(descendants(own, spare)) - stopped:
            for pid in new:
                _send(pid, signal.SIGSTOP)
            stopped |= new
        if not stopped:
            return
        for pid in stopped:
            _send(pid, signal.SIGKILL)
        for pid in children(own, spare):
            os.waitpid(pid, 0)  # its own orphans come to us as it goes


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _by_parent() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(name)
            if parent is not None:
                found.setdefault(parent, []).append(int(name))
    return found


def _parent(pid: str) -> int | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None  # it ended meanwhile
    try:
        # The name of the program stands in brackets and may hold anything, brackets too.
        return int(os.read(fd, 4096).rpartition(b")")[2].split(None, 2)[1])
    except (OSError, IndexError):
        return None
    finally:
        os.close(fd)


def _tasks_of_the_machine() -> int:
    """The total in ``/proc/loadavg``: running and, behind the slash, all; 0 where there is none."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def _send(target: int, number: signal.Signals) -> None:
    """Signal a process, or, as the kernel reads negative numbers, many; those that ended meanwhile need none."""
    try:
        os.kill(target, number)
    except OSError:
        return
