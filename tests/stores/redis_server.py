"""A Redis server of our own for tests: on a socket in a folder, ended by its process id, with faults on demand."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import redis

REQUIRED = "TOOLKIT_REDIS_REQUIRED"
_WATCHDOG = 60.0


def redis_program() -> str:
    """The server's program. Without it a test is skipped, or fails if it must be there."""
    found = shutil.which("redis-server")
    if found is None:
        reason = "redis-server is not installed (Debian: apt-get install redis-server)"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{reason}, and {REQUIRED} says that it must be")
        pytest.skip(reason)
    return found


class OwnRedis:
    """A server without persistence: when it starts again, it is empty."""

    def __init__(self) -> None:
        # Not in tmp_path: the path of a socket may have 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self.process: subprocess.Popen[bytes] | None = None
        self.program = redis_program()
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self.folder / 'socket'}"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=_WATCHDOG)

    def start(self) -> None:
        options = {"port": "0", "unixsocket": str(self.folder / "socket"), "dir": str(self.folder), "save": ""}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([self.program, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        give_up = time.monotonic() + _WATCHDOG
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < give_up, "the server does not answer"
                time.sleep(0.01)

    def kill(self) -> None:
        """Ends it at once. Whoever is connected loses the connection."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(_WATCHDOG)

    def stop(self) -> None:
        """Makes it slow: connections stay, and nothing is answered until ``go_on``."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        # SIGSTOP takes effect when the kernel says so.
        assert os.waitpid(self.process.pid, os.WUNTRACED)[0] == self.process.pid

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def restart_empty(self) -> None:
        """Another server at the same address, which knows nothing: as after a failover that lost everything."""
        self.kill()
        self.start()

    def fill(self) -> None:
        """No memory is left for anything new."""
        with self.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")

    def make_room(self) -> None:
        with self.client() as client:
            client.config_set("maxmemory", "0")

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.go_on()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
