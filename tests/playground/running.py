"""A real ``toolkit playground`` in a process of its own, and a client that has its token."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.forks import Fork
from tests.projects import DOWNSTREAM, REPOSITORY

SECONDS = 60
"""Nothing may hang forever."""
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used; httpx would read all certificates for each client


@dataclass
class RunningPlayground:
    """The process, its address, and the workspace of its tools."""

    process: Fork
    address: str
    token: str
    workspace: Path

    @property
    def url(self) -> str:
        return f"{self.address}/#token={self.token}"

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self) -> httpx.Client:
        return make_client(self.address, self.headers)

    def get(self, path: str) -> Any:
        with self.client() as client:
            return client.get(path).raise_for_status().json()

    def post(self, path: str, body: Any) -> httpx.Response:
        with self.client() as client:
            return client.post(path, json=body)

    @contextmanager
    def call(self, tool: str, **arguments: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a call, as they come. Leaving the block closes the connection."""
        body = {"tool": tool, "arguments": json.dumps(arguments)}
        with self.client() as client, client.stream("POST", "/api/calls", json=body) as response:
            assert response.status_code == 200, response.read()
            yield map(json.loads, response.iter_lines())

    def run(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The last event of a call."""
        with self.call(tool, **arguments) as events:
            return list(events)[-1]

    def count_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


def make_client(address: str, headers: Any = None) -> httpx.Client:
    """A client of its own for each use: none shares a connection with another."""
    return httpx.Client(base_url=address, headers=headers, timeout=SECONDS, trust_env=False, verify=_NO_TLS)


@contextmanager
def playground(
    workspace: Path, *options: str, folder: Path | None = None, allowing: Sequence[str] = ("--preset", "full")
) -> Iterator[RunningPlayground]:
    """Starts it for a workspace, and ends it."""
    places = os.pathsep.join(map(str, (folder or REPOSITORY, REPOSITORY, DOWNSTREAM)))
    process = Fork(
        "toolkit", "playground", "--workspace", str(workspace), *allowing, *options,
        cwd=folder or os.getcwd(), variables={"PYTHONPATH": places, "NO_COLOR": "1"}, stderr=False,
    )  # fmt: skip
    try:
        lines = (line.decode() for line in process.stdout)
        found = (re.search(r"playground: (http://\S+)/#token=(\S+)", line) for line in lines)
        address = next((match for match in found if match), None)
        assert address is not None, "it ended before it printed its address"
        yield RunningPlayground(process, address[1], address[2], workspace)
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
    finally:
        process.close()
