"""Finding and ending every process below one of ours, where no pid namespace does it.

Promise: when ``end_all`` returns, the calling process, being a subreaper, has no descendants left: what is stopped
cannot fork, what forked before is found by the next look. Limit: needs ``/proc``, and the caller must stay alive.
"""

from __future__ import annotations

import os
import signal


def descendants(ancestor: int) -> list[int]:
    """Every process whose chain of parents leads to ``ancestor``; those that ended and wait to be reaped as well."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(name)
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    pending = [ancestor]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def end_all(ancestor: int) -> None:
    """Stop, then kill, then reap, until nothing is left below ``ancestor``, which is the calling process."""
    while _has_children():  # orphans come to a subreaper, so without children there are no descendants
        stopped: set[int] = set()
        while new := set(descendants(ancestor)) - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
        _signal(stopped, signal.SIGKILL)
        _reap_until_quiet()


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program stands in brackets and may hold anything, brackets too.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return None  # it ended meanwhile


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue  # it ended meanwhile


def _reap_until_quiet() -> None:
    """Wait for all children: every one of them has been killed, and orphans come to us as they are killed."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
