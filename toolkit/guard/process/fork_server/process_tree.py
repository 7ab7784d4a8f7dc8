"""Finding the processes of a command, and killing those below one of ours where no pid namespace does it. Supervisors and
the fork server of the reduced tier run this.

Promise: when ``kill_descendants`` returns, the calling process, which must be a subreaper, has no descendants left but
those it must spare: a stopped process cannot fork, and what it forked before is found by the next look. With
scoped signals (``landlock.scope_signals``) one system call kills them all at once, so nothing can escape by forking.
Limits: needs ``/proc``, and the caller must stay alive; without scoped signals, a program that changes its pid all the
time by forking may never be found.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection


def children(parent: int, spare: Collection[int] = ()) -> list[int]:
    """The child processes of ``parent``, without those in ``spare``."""
    return [pid for pid in _children_by_parent().get(parent, []) if pid not in spare]


def descendants(ancestor: int, spare: Collection[int] = ()) -> list[int]:
    """Every process below ``ancestor``, zombies included; those in ``spare`` and below them are left out."""
    by_parent = _children_by_parent()
    found: list[int] = []
    pending = [ancestor]
    while pending:
        below = [pid for pid in by_parent.get(pending.pop(), []) if pid not in spare]
        found += below
        pending += below
    return found


def others_in_namespace() -> list[int]:
    """Every other process of this pid namespace, zombies included."""
    own = os.getpid()
    return [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) != own]


def find_descendants(ancestor: int, most: int) -> list[int]:
    """What ``descendants`` returns, but stops when there are more than ``most``, and costs less on a busy machine.

    Limit: may miss one whose brother ends meanwhile; to kill, use ``descendants``.
    """
    found: list[int] = []
    pending = [ancestor]
    while pending and len(found) <= most:
        below = _listed_children(pending.pop())
        if below is None:  # this kernel does not list them
            return descendants(ancestor)
        found += below
        pending += below
    return found


def kill_descendants(spare: Collection[int] = (), *, signals_scoped: bool = False, group: int = 0) -> None:
    """Kill and reap everything below this process, except what is in ``spare`` and below.

    ``signals_scoped``: signals of this process reach only its descendants. ``group``: a process group that most of
    them are likely in.
    """
    own = os.getpid()
    if signals_scoped:
        _send(-1, signal.SIGKILL)
    elif group:
        _send(-group, signal.SIGKILL)
    while _has_children():  # orphans become children of a subreaper: without children there are no descendants
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
            os.waitpid(pid, 0)  # its orphans become our children


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _listed_children(pid: int) -> list[int] | None:
    """The children that each thread of a process has; None where the kernel has no such list."""
    folder = f"/proc/{pid}/task"
    found: list[int] = []
    try:
        threads = os.listdir(folder)
    except OSError:
        return found  # it has ended
    for thread in threads:
        try:
            with open(f"{folder}/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if os.path.exists(f"{folder}/{thread}"):
                return None
        except OSError:
            continue
    return found


def _children_by_parent() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _read_parent(name)
            if parent is not None:
                found.setdefault(parent, []).append(int(name))
    return found


def _read_parent(pid: str) -> int | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None  # it has ended
    try:
        # The program name is in parentheses and may contain anything, parentheses too.
        return int(os.read(fd, 4096).rpartition(b")")[2].split(None, 2)[1])
    except (OSError, IndexError):
        return None
    finally:
        os.close(fd)


def _send(target: int, number: signal.Signals) -> None:
    """Signal a process, or many, as the kernel reads negative numbers; ignores those that have ended."""
    try:
        os.kill(target, number)
    except OSError:
        return
