"""The agent's side of the fork server: starts it, sends it commands, and holds the socket to each command.

Promise: the fork server ends when its client is closed or this process ends, however it ends, and every command ends
with it. Nothing that a tool may write decides what the fork server runs: neither the environment, ``pyvenv.cfg``, a
start-up file nor the current directory, and what is next to our package is not on its path. May be used by several
threads; starts no thread and runs no Python between fork and exec in this process.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from toolkit.errors import ToolFailed
from toolkit.forks import open_socket_pair
from toolkit.guard.process.kernel import Unsupported
from toolkit.guard.process.messages import CommandRequest, Setup, encode
from toolkit.guard.process.program import helper_interpreter
from toolkit.system_faults import SCARCE_AT_START, system_fault

_PACKAGE: Final = str(Path(__file__).resolve().parents[2])
# Finds our package and nothing else in its directory: a module that is missing elsewhere must stay missing.
_CODE: Final = """
import sys, _frozen_importlib_external as files
class OurPackage:
    def find_spec(name, path=None, target=None):
        if name == "toolkit":
            folder = sys.argv[1]
            return files.spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])
sys.meta_path.append(OurPackage)
from toolkit.guard.process.fork_server import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""
_STDERR: Final = 2
# A filter of system calls around this process killed it, or it crashed: it will do so again.
_NOT_POSSIBLE_HERE: Final = (-signal.SIGSYS, -signal.SIGSEGV, -signal.SIGILL)
_ROOM_FOR_ONE: Final = socket.CMSG_SPACE(4)
_AT_ONCE: Final = socket.MSG_DONTWAIT | getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class CommandHandle:
    """The socket to one command. ``poll_fd`` becomes readable when a report has come or the command has ended.

    The first of ``reports`` says how it went: ``status`` and the status that ``wait`` returned, or the step that
    failed, its errno and a text. ``listener`` is the socket its proxy accepts from, once it has come; the caller takes
    and closes it. Closing the socket to the command kills it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.poll_fd = connection.fileno()
        self.reports: list[tuple[str, int, str]] = []
        self.listener: int | None = None
        self._is_gone = False

    def has_ended(self) -> bool:
        """Whether all of its processes are gone; reads reports, never waits.

        So they are when the socket ends; a report may say it earlier, which saves waiting for the end of the supervisor.
        """
        while not self._is_gone:
            try:
                report, ancillary, _, _ = self._connection.recvmsg(1 << 16, _ROOM_FOR_ONE, _AT_ONCE)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not report:
                return True
            kind, number, text = report.decode().split(" ", 2)
            if kind == "listener":
                self.listener = _received_descriptor(ancillary)
            else:
                self._is_gone = kind == "ended"
                self.reports.append(("status" if self._is_gone else kind, int(number), text))
        return True

    def kill(self) -> None:
        """Close our direction of the socket: everything the command started is killed, and then it ``has_ended``."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._connection.close()


def _received_descriptor(ancillary: list[tuple[int, int, bytes]]) -> int:
    if not ancillary:  # the kernel drops what this process has no room for
        raise system_fault("the command's proxy could not be started", "this process has too many open files")
    return int.from_bytes(ancillary[0][2], sys.byteorder)


class ForkServerClient:
    """One fork server. The constructor returns when it is ready, or raises ``Unsupported`` with its reason.

    What this process lacks is an ``OSError``, what the fork server lacks the failure ``SYSTEM``: both may pass.
    """

    def __init__(self, setup: Setup, workspace_fd: int) -> None:
        self._control, server_end = open_socket_pair()
        try:
            with server_end, _above_stdio(server_end.fileno()) as socket_fd, _above_stdio(workspace_fd) as folder:
                numbers = (socket_fd, folder)
                self._process = subprocess.Popen(
                    [helper_interpreter(), "-I", "-S", "-c", _CODE, _PACKAGE, *map(str, numbers)],
                    pass_fds=numbers,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                    start_new_session=True,  # keys typed at the terminal signal this process only
                )
        except OSError:
            self._control.close()
            raise
        answer = b""
        with contextlib.suppress(OSError):  # it has ended already
            self._control.send(encode(setup))
            answer = self._control.recv(1 << 16)
        if answer != b"ready":
            self._control.close()
            self._process.wait()
            raise _refusal(answer.decode(), self._process.returncode)

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, request: CommandRequest, stdio: Sequence[int]) -> CommandHandle:
        """Run a command with these three descriptors as stdin, stdout and stderr.

        ``ConnectionError`` if the server is gone; another ``OSError`` if this process lacks something.
        """
        ours, server_end = open_socket_pair()
        try:
            with server_end, memory_file(encode(request)) as text:
                self._send(array.array("i", [text, *stdio, server_end.fileno()]))
        except OSError:
            ours.close()
            raise
        return CommandHandle(ours)

    def _send(self, descriptors: array.array[int]) -> None:
        message = [b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        try:
            self._control.sendmsg(*message)
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            # Descriptors on their way through sockets count for all processes of the user together, and a command may
            # send many that nobody takes. The sender's limit of open files decides, and a command cannot raise its own.
            with _most_open_files():
                self._control.sendmsg(*message)

    def leave_to_parent(self) -> None:
        """In a fork of the process that started it: it goes on, for that process, and this one has nothing to do with it."""
        self._process.returncode = 0  # not a child of this process, which can neither wait for it nor end it

    def close(self) -> None:
        """End the fork server and every command it runs; a second time does nothing."""
        self._control.close()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def _refusal(answer: str, exit_code: int) -> Unsupported | ToolFailed:
    """Why a fork server did not start. One that ended without a word lacked something, or was killed from outside."""
    number, _, why = answer.partition(" ")
    if answer and int(number) not in SCARCE_AT_START:
        return Unsupported(why)
    if exit_code in _NOT_POSSIBLE_HERE:
        return Unsupported("the fork server ended")
    return system_fault("the sandbox could not be started", why or "its process ended")


@contextlib.contextmanager
def _above_stdio(descriptor: int) -> Iterator[int]:
    """The same as a number that is not one of stdin, stdout and stderr: a new program gets others there.

    In a program that has closed those, the next file that is opened takes such a number.
    """
    if descriptor > _STDERR:
        yield descriptor
        return
    copied = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
    try:
        yield copied
    finally:
        os.close(copied)


@contextlib.contextmanager
def _most_open_files() -> Iterator[None]:
    """This process may have as many open files as it may allow itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def memory_file(data: bytes) -> Iterator[int]:
    """A descriptor from which ``data`` can be read, of any length."""
    with open(os.memfd_create("toolkit"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()
