"""What processes use of the machine, as the kernel reports it in ``/proc``. The supervisor runs this.

What a process has is read in two ways. ``ProcessStatus`` is cheap, may be read of every process, and counts a page in
each process that has it. ``shared_fairly`` walks the page tables and divides a page among those who have it; a process
that forbids that (it is not dumpable) is counted as if it shared nothing.

Limits: memory that only the kernel holds is not seen: what is in pipes and sockets, and descriptors that are on their way
through a socket.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable
from typing import Final

from toolkit.guard.process.kernel.syscall import syscall

_KCMP: Final = (312, 272)  # (x86_64, aarch64)
_KCMP_VM: Final = 1
_CHLD_BIT: Final = 1 << 16  # of SIGCHLD, in the masks of /proc
_MAX_READ: Final = 1 << 14
_MAX_DESCRIPTORS: Final = 20_000  # looked at once: more would take longer than a command may go unwatched


class ProcessStatus:
    """One process: its parent and its memory in bytes.

    ``private`` is what it would free if nobody shared it, with its page tables; ``shared`` is shared memory.
    ``ignores_children``: the kernel forgets what its children did when they end.
    """

    __slots__ = ("ignores_children", "is_zombie", "page_tables", "parent", "pid", "private", "shared", "threads")

    def __init__(self, pid: int, text: bytes) -> None:
        self.pid = pid
        self.parent = _number(text, b"\nPPid:")
        self.threads = _number(text, b"\nThreads:")
        self.is_zombie = b"\nState:\tZ" in text
        self.page_tables = _number(text, b"\nVmPTE:") << 10
        self.private = self.page_tables + ((_number(text, b"\nRssAnon:") + _number(text, b"\nVmSwap:")) << 10)
        self.shared = _number(text, b"\nRssShmem:") << 10
        self.ignores_children = bool(_number(text, b"\nSigIgn:", 16) & _CHLD_BIT)


def read_status(pid: int) -> ProcessStatus | None:
    """None if it has ended. Where only its first thread has ended, another one stands for it: the first shows nothing."""
    try:
        status = ProcessStatus(pid, _read(f"/proc/{pid}/status"))
        if status.is_zombie and status.threads > 1:
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                status = ProcessStatus(thread, _read_or_nothing(f"/proc/{thread}/status"))
                if status.private and not status.is_zombie:
                    break
    except OSError:
        return None
    return status


def shared_fairly(process: ProcessStatus) -> tuple[int, int]:
    """Its part of private and of shared memory, where what several processes have is divided among them.

    Nothing for one that still runs in its parent's memory, as between ``vfork`` and ``exec``.
    """
    if _runs_in_memory_of(process.pid, process.parent):
        return 0, 0
    try:
        text = _read(f"/proc/{process.pid}/smaps_rollup")
    except OSError:  # it forbids that, or has ended since
        now = read_status(process.pid)
        return (now.private, now.shared) if now is not None else (0, 0)
    private = _number(text, b"\nPss_Anon:") + _number(text, b"\nSwapPss:")
    return (private << 10) + process.page_tables, _number(text, b"\nPss_Shmem:") << 10


def memory_files(processes: Collection[ProcessStatus]) -> int | None:
    """Bytes in files without a name that these processes have open (``memfd_create``) or mapped (shared memory).

    None if that cannot be told: of a file that is mapped and not open, only the part that is in page tables is known.
    """
    found = _open_memory_files(processes)
    if found is None or any(_maps_others(process.pid, found) for process in processes if not process.is_zombie):
        return None
    return sum(found.values())


def _open_memory_files(processes: Iterable[ProcessStatus]) -> dict[int, int] | None:
    """Their sizes by inode."""
    found: dict[int, int] = {}
    looked_at = 0
    for process in processes:
        if process.is_zombie:
            continue
        folder = f"/proc/{process.pid}/fd"
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            return None
        looked_at += len(names)
        if looked_at > _MAX_DESCRIPTORS:
            return None
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                    info = os.stat(f"{folder}/{name}")
                    found[info.st_ino] = info.st_blocks * 512
            except PermissionError:
                return None
            except OSError:
                continue  # it was closed
    return found


def _maps_others(pid: int, known: Collection[int]) -> bool:
    """Whether it has mapped a file without a name that is not ``known``; those of System V are counted elsewhere."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended
    except OSError:
        return True
    device = _memory_device()
    for line in lines:
        words = line.split(None, 5)  # addresses, rights, offset, device, inode, name
        if words[3] == device and int(words[4]) not in known and not words[5].startswith(b"/SYSV"):
            return True
    return False


@functools.cache
def _memory_device() -> bytes:
    """The device that all files without a name are on, as ``maps`` shows it."""
    fd = os.memfd_create("")
    device = os.fstat(fd).st_dev
    os.close(fd)
    return b"%02x:%02x" % (os.major(device), os.minor(device))


def system_v_memory() -> int:
    """Bytes in the segments of this ipc namespace, attached or not."""
    try:
        with open("/proc/sysvipc/shm", "rb") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return 0  # this kernel has none
    return sum(int(line.split()[-2]) + int(line.split()[-1]) for line in lines)


def shared_memory_of_machine() -> int:
    """Bytes of shared memory and of files in memory, of everybody."""
    return _number(_read_or_nothing("/proc/meminfo"), b"\nShmem:") << 10


def used_bytes(folder: str) -> int:
    """What is in use on the file system of ``folder``."""
    info = os.statvfs(folder)
    return (info.f_blocks - info.f_bfree) * info.f_frsize


def written_bytes(pid: int) -> int | None:
    """What it, its threads and the children it waited for have written to disk; None if that is not known.

    The kernel counts a page when it becomes dirty, so also pages of mapped files, and not those of files in memory.
    """
    try:
        return _number(_read(f"/proc/{pid}/io"), b"\nwrite_bytes:")
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended, and counts with the one who waited for it
    except OSError:
        return None


def _runs_in_memory_of(pid: int, other: int) -> bool:
    try:
        return syscall("kcmp", _KCMP, pid, other, _KCMP_VM, 0, 0) == 0
    except OSError:
        return False


def _number(text: bytes, label: bytes, base: int = 10) -> int:
    """The number after ``label``; 0 where there is none."""
    words = text.partition(label)[2].split(None, 1)
    return int(words[0], base) if words else 0


def _read_or_nothing(path: str) -> bytes:
    try:
        return _read(path)
    except OSError:
        return b""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MAX_READ)
    finally:
        os.close(fd)
