"""What a process holds: descriptors, threads, children, memory."""

from __future__ import annotations

import gc
import os
import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """Counted at one moment."""

    descriptors: int
    threads: int
    children: int
    resident_kib: int

    def more_than(self, before: Held) -> int:
        """How many descriptors, threads and children were added."""
        return sum(
            max(0, now - then)
            for now, then in (
                (self.descriptors, before.descriptors),
                (self.threads, before.threads),
                (self.children, before.children),
            )
        )


def count_held() -> Held:
    """What this process holds now, once what has ended is gone."""
    gc.collect()
    deadline = time.monotonic() + 10
    while any(thread.name.startswith("toolkit-") for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)  # idle threads of closed toolkits end by themselves
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
    task = f"/proc/self/task/{os.getpid()}/children"
    with open(task) as file:
        children = len(file.read().split())
    return Held(len(os.listdir("/proc/self/fd")), threading.active_count(), children, resident)
