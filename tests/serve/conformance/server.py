"""``toolkit serve`` as a process, at an address of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.forks import Fork

SECONDS = 120
"""For what takes a moment, unless the machine is busy."""


@contextmanager
def serve_http(folder: Path, *options: str, token: str = "") -> Iterator[str]:
    """The URL of a server that was started in ``folder``. It ends in good order, or the test fails."""
    variables = {"TOOLKIT_SERVE_TOKEN": token, "NO_COLOR": "1"}
    process = Fork("toolkit", "serve", "--http", "127.0.0.1:0", *options, cwd=folder, variables=variables)
    try:
        announced = process.stderr.readline().decode()
        found = re.search(r"http://\S+/mcp", announced)
        assert found is not None, announced + process.read_stderr()
        yield found[0]
        process.send_signal(signal.SIGTERM)
        said = process.read_stderr()
        assert process.wait(SECONDS) == 0, said
        # Before it, the SDK may warn of clients that left, and of forged requests.
        assert said.endswith("stopped\n"), said
    finally:
        process.close()
