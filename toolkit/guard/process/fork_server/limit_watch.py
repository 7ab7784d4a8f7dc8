"""Watching what a command and everything it started use together, until it is more than its limits allow.

Promise: processes, memory and bytes written to disk are added up about every 50 ms (less often where that takes long),
over all processes of the command however they came to be, and ``exceeded`` names the limit. Memory is anonymous memory
and page tables, shared memory, files without a name, and in the full tier the command's own ``/tmp``; a page that several
processes share counts once. Clean copies of files, which the kernel drops when it needs memory, do not count.

Where the kernel does not tell what a process wrote (it forbids it, or nobody waits for it), the loss of free space on the
file systems of the writable roots counts instead, whoever caused it. Where it does not tell what is in files without a
name and shared memory (it forbids it, or they are mapped but not open), the growth of the machine's shared memory does.

Limits: a command may use more for a moment, between two looks. Shared memory may reach twice the limit if half of it has
a name. See ``usage`` for what is not seen; what a file system needs besides contents (names, long links) does not count as
written, nor what is written to file systems that the kernel does not write back to a disk (tmpfs, FUSE).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from toolkit.guard.process.fork_server.usage import (
    ProcessStatus,
    memory_files,
    read_status,
    shared_fairly,
    shared_memory_of_machine,
    system_v_memory,
    used_bytes,
    written_bytes,
)

if TYPE_CHECKING:
    from toolkit.guard.process.limits import CommandLimits, EndedBy

_FIRST_SECONDS: Final = 0.02  # most commands are shorter, and pay nothing
_EVERY_SECONDS: Final = 0.05
_AT_LEAST_EVERY_SECONDS: Final = 1.0
_SHARE_OF_TIME: Final = 10  # looking takes a tenth of the time at most, between these two
_BLOCK: Final = 512  # of ru_oublock
_MOST_TASKS: Final = 1 << 22  # the kernel numbers no more


def most_tasks(processes: int) -> int:
    """How many tasks a command may have that may have so many processes: threads count, too."""
    return min(max(1024, 16 * processes), _MOST_TASKS)


class LimitWatch:
    """Looks at one command. ``find_processes(most)`` returns its processes, and may stop when it has more than ``most``.

    ``places`` are descriptors of the roots it may write; ``tmp`` is its own file system in memory, if it has one.
    """

    def __init__(
        self,
        limits: CommandLimits,
        find_processes: Callable[[int], list[int]],
        places: Sequence[int],
        tmp: str,
        *,
        counts_writes: bool,
    ) -> None:
        self._limits = limits
        self._find_processes = find_processes
        self._tmp = tmp
        self._counts_writes = counts_writes
        self._places = places
        self._file_systems: dict[int, int] = {}
        self._free_before = self._shared_before = self._most_written = 0
        self._zombies: set[int] = set()
        self._all_writes_known = True
        self._next_look = time.monotonic() + _FIRST_SECONDS

    def pause(self) -> int:
        """Milliseconds until the next look."""
        return max(0, 1 + int((self._next_look - time.monotonic()) * 1000))

    def exceeded(self) -> EndedBy | None:
        """The limit that is exceeded; None also while it is not yet time for the next look."""
        if time.monotonic() < self._next_look:
            return None
        before = time.process_time()
        if not self._file_systems:
            self._note_start()
        found = self._look()
        took = time.process_time() - before
        self._next_look = time.monotonic() + min(max(_EVERY_SECONDS, _SHARE_OF_TIME * took), _AT_LEAST_EVERY_SECONDS)
        return found

    def _note_start(self) -> None:
        """Note how things are before the command has done much."""
        self._file_systems = {os.fstat(place).st_dev: place for place in self._places}
        self._free_before = self._free_bytes()
        self._shared_before = shared_memory_of_machine()

    def _look(self) -> EndedBy | None:
        pids = self._find_processes(self._limits.processes)
        if len(pids) > self._limits.processes:
            return "processes"
        processes = _read_all(pids)
        if sum(process.threads for process in processes) > most_tasks(self._limits.processes):
            return "processes"
        if self._memory_at_most(processes) > self._limits.memory and self._uses_too_much_memory(processes):
            return "memory"
        if self._counts_writes and self._written(processes) > self._limits.disk:
            return "disk"
        return None

    def _memory_at_most(self, processes: list[ProcessStatus]) -> int:
        """Cheap: what several processes share counts several times, and shared memory of others counts, too."""
        private = sum(process.private for process in processes)
        shared = sum(process.shared for process in processes)
        return private + max(shared + self._tmp_bytes(), self._shared_growth())

    def _uses_too_much_memory(self, processes: list[ProcessStatus]) -> bool:
        """Adds up twice before it takes a result for a fact: if processes end meanwhile, what they shared counts again for
        each one that is read after them.
        """
        if self._memory(processes) <= self._limits.memory:
            return False
        return self._memory(_read_all(self._find_processes(self._limits.processes))) > self._limits.memory

    def _memory(self, processes: list[ProcessStatus]) -> int:
        private = mapped = 0
        for process in processes:
            own, shared = shared_fairly(process)
            private += own
            mapped += shared
        named = self._tmp_bytes() + (system_v_memory() if self._tmp else 0)
        if private + max(mapped, named) > self._limits.memory:
            return private + max(mapped, named)
        files = memory_files(processes)
        return private + max(mapped, self._shared_growth() if files is None else named + files)

    def _tmp_bytes(self) -> int:
        return used_bytes(self._tmp) if self._tmp else 0

    def _shared_growth(self) -> int:
        return shared_memory_of_machine() - self._shared_before

    def _written(self, processes: list[ProcessStatus]) -> int:
        """Adds up twice before it takes a result for a fact: who is waited for meanwhile may count twice or not at all."""
        written = self._add_up_written(processes)
        if written > self._limits.disk:
            written = min(written, self._add_up_written(processes))
        elif written < self._most_written and self._add_up_written(processes) < self._most_written:
            self._all_writes_known = False  # nobody waited for a process that had written something
        self._most_written = max(self._most_written, written)
        self._note_unknown_writers(processes)
        return written if self._all_writes_known else max(written, self._free_before - self._free_bytes())

    def _add_up_written(self, processes: list[ProcessStatus]) -> int:
        total = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock * _BLOCK
        for process in processes:
            written = 0 if process.is_zombie else written_bytes(process.pid)
            if written is None:
                self._all_writes_known = False
            else:
                total += written
        return total

    def _note_unknown_writers(self, processes: list[ProcessStatus]) -> None:
        """What a process wrote is not counted while it is a zombie, and is lost when its parent ignores it."""
        zombies = {process.pid for process in processes if process.is_zombie}
        if zombies & self._zombies or any(process.ignores_children for process in processes):
            self._all_writes_known = False
        self._zombies = zombies

    def _free_bytes(self) -> int:
        total = 0
        for place in self._file_systems.values():
            info = os.fstatvfs(place)
            total += info.f_bfree * info.f_frsize
        return total


def _read_all(pids: list[int]) -> list[ProcessStatus]:
    return [status for pid in pids if (status := read_status(pid)) is not None]
