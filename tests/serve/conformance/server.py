"""``toolkit serve`` as a process, at an address of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 120
"""For what takes a moment, unless the machine is busy."""


@contextmanager
def serve_http(folder: Path, *options: str, token: str = "") -> Iterator[str]:
    """The URL of a server that was started in ``folder``. It ends in good order, or the test fails."""
    command = [sys.executable, "-m", "toolkit", "serve", "--http", "127.0.0.1:0", *options]
    environment = {**os.environ, "TOOLKIT_SERVE_TOKEN": token, "NO_COLOR": "1"}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        announced = process.stderr.readline()
        found = re.search(r"http://\S+/mcp", announced)
        try:
            assert found is not None, announced + process.stderr.read()
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, said
        assert said.endswith("stopped\n"), (
            said
        )  # before it, the SDK may warn of clients that left, and of forged requests
