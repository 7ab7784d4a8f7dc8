"""Commands of workers, as this machine sees them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from tests.fleet.agents import WATCHDOG
from toolkit import ToolCall


class Sleeper:
    """A command that never ends by itself, and that no other process looks like."""

    def __init__(self) -> None:
        self.seconds = f"{secrets.randbelow(10**9) + 10**9}"

    @property
    def call(self) -> ToolCall:
        # Two processes: a child of the command is to end with it.
        return ToolCall("sleeper", "bash", {"command": f"sleep {self.seconds} & sleep {self.seconds}; wait"})

    def processes(self) -> list[int]:
        wanted = f"sleep\0{self.seconds}\0".encode()
        return [int(file.parent.name) for file in Path("/proc").glob("[0-9]*/cmdline") if _read(file) == wanted]

    def wait_until_started(self) -> None:
        self._wait(lambda: len(self.processes()) == 2)

    def wait_until_gone(self) -> None:
        self._wait(lambda: not self.processes())

    def _wait(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + WATCHDOG
        while not is_so():
            assert time.monotonic() < until, self.processes()
            time.sleep(0.01)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it has ended
        return b""
