"""What tests of the tools that run commands share: toolkits, and a line that tells whether something is still alive."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.guard import Permission
from toolkit.guard.process.tier import pick_tier

WATCHDOG_MS: Final = 60_000
NO_NETWORK: Final[frozenset[Permission]] = frozenset({"read", "write", "execute"})
# Told by the inner shell; a command that goes wrong before it has opened the line would say so in its output.
OPEN_LINE: Final = "exec 9>line; "


def needs_a_sandbox() -> None:
    choice = pick_tier("auto")
    if choice.name == "none":
        pytest.skip(f"this machine gives no sandbox: {choice.reason}")


def offline(root: Path, policy: SecurityPolicy | None = None, **context: Any) -> Toolkit:
    """A toolkit whose commands have no network."""
    settings = {"permissions": NO_NETWORK, **context}
    return create_agent_toolkit(ToolkitContext(root, policy or SecurityPolicy(default="allow"), **settings))


class Line:
    """This end of a pipe with a name: every process that inherited the other end from ``OPEN_LINE`` holds it open."""

    def __init__(self, path: Path) -> None:
        self._fd: Final = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def heard(self) -> bytes:
        """What was written so far."""
        try:
            return os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return b""

    def is_held(self) -> bool:
        """Whether anybody holds the other end; all that was written must have been read."""
        try:
            return os.read(self._fd, 1 << 16) != b""
        except BlockingIOError:
            return True

    def wait_for_words(self) -> bytes:
        """Blocks until somebody writes."""
        self._wait(select.POLLIN)
        return self.heard()

    def wait_until_nobody_holds_it(self) -> None:
        self.heard()
        self._wait(select.POLLHUP)

    def _wait(self, event: int) -> None:
        poller = select.poll()
        poller.register(self._fd, event)
        while True:
            ready = poller.poll(WATCHDOG_MS)
            assert ready, "nothing happened"
            if ready[0][1] & event:
                return

    def close(self) -> None:
        os.close(self._fd)


@contextmanager
def line_in(root: Path) -> Iterator[Line]:
    os.mkfifo(root / "line")
    line = Line(root / "line")
    yield line
    line.close()
