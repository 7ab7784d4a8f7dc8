"""Programs of ours in processes that begin with their imports done, as forks of one process that has imported them.

For what runs beside a test: servers, and runs of pytest. ``tests/command_line.py`` has commands that a test waits for. A server of
MCP imports for most of a second. Tests about the start itself start an interpreter instead.

The process that forks listens on a socket. Whoever connects sends what the program is to get, and its files; the answer is the
process id, and the exit code when it has ended. If the connection ends before, so does the program.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import FrameType

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Fork:
    """``python -m module arguments``, with pipes to and from it. Without ``stderr``, it writes its errors where we do."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        cwd: Path | str = "/",
        variables: Mapping[str, str] | None = None,
        stderr: bool = True,
    ) -> None:
        pipes = [os.pipe() for _ in range(3)]
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(pipes[0][1], "wb"),
            os.fdopen(pipes[1][0], "rb"),
            os.fdopen(pipes[2][0], "rb"),
        )
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1] if stderr else 2]
        environment = {**os.environ, **(variables or {})}
        try:
            self._connection = connect(_listening(), module, arguments, str(cwd), environment, theirs)
        finally:
            for file in (pipes[0][0], pipes[1][1], pipes[2][1]):
                os.close(file)
        self._answers = self._connection.makefile()
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def read_stderr(self) -> str:
        """What is left of it, when the process has ended."""
        return self.stderr.read().decode()

    def send_signal(self, number: int) -> None:
        """For a process that has not ended."""
        os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._connection.settimeout(timeout)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def close(self) -> None:
        """Ends it, if it has not ended."""
        if self.returncode is None:
            self._connection.shutdown(socket.SHUT_WR)  # the pid may be that of another process by now
            self.wait()
        with suppress(BrokenPipeError):  # what was never read
            self.stdin.close()
        self.stdout.close()
        self.stderr.close()


def relayed(module: str, *arguments: str) -> list[str]:
    """A command that behaves like ``python -m module arguments``, for those who start a command.

    It hands its own files to a fork and stands for it: signals that can be caught reach the fork, and the exit code is the same.
    """
    return [sys.executable, "-I", "-S", __file__, _listening(), module, *arguments]


def connect(
    address: str, module: str, arguments: tuple[str, ...], folder: str, environment: dict[str, str], files: list[int]
) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    request = {"module": module, "arguments": arguments, "folder": folder, "environment": environment}
    data = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [data], files)
    connection.sendall(data[sent:])
    return connection


_address = ""


def _listening() -> str:
    """Where the process listens that forks. It is started when it is first needed, and ends with this one."""
    global _address
    if not _address:
        import atexit
        import subprocess
        import tempfile

        folder = tempfile.TemporaryDirectory(prefix="forks-")
        _address = os.path.join(folder.name, "socket")
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks", _address],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": REPOSITORY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout
        process.stdout.readline()
        atexit.register(folder.cleanup)
        atexit.register(process.__exit__, None, None, None)  # it ends when its input does
    return _address


def _serve(address: str) -> None:
    _import()
    base = [place for place in sys.path if place not in ("", REPOSITORY)]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    os.write(1, b"ready\n")
    while 0 not in select.select([0, listener.fileno()], [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _keep(connection, base)
        connection.close()
        _reap()


def _import() -> None:
    import gc

    import mcp  # noqa: F401
    import pytest  # noqa: F401
    import uvicorn  # noqa: F401

    import toolkit.builtin.files
    import toolkit.cli.commands
    import toolkit.generated
    import toolkit.guard
    import toolkit.loop
    import toolkit.runtime.toolkit
    import toolkit.serve.http
    import toolkit.serve.setup
    import toolkit.serve.transports  # noqa: F401

    gc.freeze()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _keep(connection: socket.socket, base: list[str]) -> None:
    """Starts the program in a child of its own, and waits for its end: in the child alone, this returns with ``SystemExit``."""
    data, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 16)
    child = os.fork()
    if not child:
        connection.close()
        _become(**json.loads(data), files=files, base=base)
    for number in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    try:
        connection.sendall(b"%d\n" % child)
        if ended not in select.select([ended, connection.fileno()], [], [])[0]:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def _become(
    module: str, arguments: list[str], folder: str, environment: dict[str, str], files: list[int], base: list[str]
) -> NoReturn:
    import runpy

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), REPOSITORY, *base]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    raise SystemExit(0)


def _relay(address: str, module: str, *arguments: str) -> NoReturn:
    connection = connect(address, module, arguments, os.getcwd(), dict(os.environ), [0, 1, 2])
    for number in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    answers = connection.makefile()
    child = int(answers.readline())

    def pass_on(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    code = int(answers.readline())
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    if sys.argv[2:]:
        _relay(*sys.argv[1:])
    _serve(*sys.argv[1:])
