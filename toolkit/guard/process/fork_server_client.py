"""This side of the fork server: starting it, handing it commands, and holding the leash of each.

Promise: a helper ends when this object is closed or this process ends, however it ends, and every command with it.
May be used by several threads; starts no thread and runs no Python between fork and exec in this process.
"""

from __future__ import annotations

import array
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from toolkit.guard.process.kernel.syscall import Unsupported
from toolkit.guard.process.messages import Plan, Setup, encode

_PACKAGE_ROOT: Final = str(Path(__file__).resolve().parents[3])
# Isolated: neither the environment nor the current directory decides what is imported. Ours comes last on the path.
_CODE: Final = (
    "import sys; sys.path.append(sys.argv[1]); from toolkit.guard.process.fork_server import main; "
    "main(int(sys.argv[2]), int(sys.argv[3]))"
)


class Job:
    """One running command. ``notice`` becomes readable when there is something to hear of it.

    ``messages`` say how it went, the first one counts: ``status`` and what ``wait`` answers, or the step that failed,
    the number of the error and its text.
    """

    def __init__(self, leash: socket.socket) -> None:
        self._leash = leash
        self.notice = leash.fileno()
        self.messages: list[tuple[str, int, str]] = []

    def ended(self) -> bool:
        """Whether all of its processes are gone; never waits."""
        while True:
            try:
                message = self._leash.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not message:
                return True
            kind, number, text = message.decode().split(" ", 2)
            self.messages.append((kind, int(number), text))

    def kill(self) -> None:
        """Let go of the leash: everything the command started is killed, and then it has ``ended``."""
        with contextlib.suppress(OSError):
            self._leash.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._leash.close()


class Helper:
    """One fork server. The constructor returns when it is ready, or raises ``Unsupported`` with its reason."""

    def __init__(self, setup: Setup, workspace_fd: int) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        numbers = (theirs.fileno(), workspace_fd)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _CODE, _PACKAGE_ROOT, *map(str, numbers)],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,  # what is typed at a terminal is meant for this process
            )
        answer = b""
        with contextlib.suppress(OSError):  # it is gone already
            self._control.send(encode(setup))
            answer = self._control.recv(1 << 16)
        if answer != b"ready":
            self.close()
            raise Unsupported(answer.decode() or "the helper process ended")

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, plan: Plan, stdio: Sequence[int]) -> Job:
        """Run ``plan`` with these three descriptors as its input, output and errors; ``OSError`` if it is gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, in_memory(encode(plan)) as text:
            descriptors = array.array("i", [text, *stdio, theirs.fileno()])
            try:
                self._control.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            except OSError:
                ours.close()
                raise
        return Job(ours)

    def close(self) -> None:
        """End the helper and every command it runs; a second time does nothing."""
        self._control.close()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def in_memory(data: bytes) -> Iterator[int]:
    """A descriptor from which ``data`` can be read, of any length."""
    with open(os.memfd_create("toolkit"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()
