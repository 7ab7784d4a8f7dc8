"""Health and metrics of a server over HTTP."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import Client

from tests.serve.clients import Running, serving

pytestmark = pytest.mark.slow

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("operations")
    with serving("--workspace", str(folder), "--preset", "read-only", TOOLKIT_SERVE_TOKEN=TOKEN) as server:
        yield server


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("operations")
    (folder / "a.txt").write_text("one\n")
    with serving("--workspace", str(folder), "--preset", "read-only") as server:
        yield server


def base(server: Running) -> str:
    return server.url.removesuffix("/mcp")


def metrics(server: Running) -> dict[str, float]:
    answer = httpx.get(f"{base(server)}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    rows = re.findall(r"^([a-z_]+(?:\{[^}]*\})?) ([0-9.e+]+)$", answer.text, re.M)
    names = {name.partition("{")[0] for name, _ in rows}
    assert all(f"# TYPE {name} " in answer.text and f"# HELP {name} " in answer.text for name in names)
    return {name: float(value) for name, value in rows}


def test_it_is_well_and_says_nothing_else(locked: Running) -> None:
    answer = httpx.get(f"{base(locked)}/health")
    assert (answer.status_code, answer.text, answer.headers["cache-control"]) == (200, "ok\n", "no-store")
    assert httpx.post(f"{base(locked)}/health").status_code == 405
    assert httpx.get(f"{base(locked)}/health", headers={"Host": "evil.example"}).status_code == 421
    assert httpx.get(f"{base(locked)}/health", headers={"Origin": "https://evil.example"}).status_code == 403


def test_with_a_token_its_metrics_are_for_those_who_have_it(locked: Running) -> None:
    assert metrics(locked)["toolkit_calls_running"] == 0


def test_metrics_need_the_token(locked: Running) -> None:
    answer = httpx.get(f"{base(locked)}/metrics")
    assert answer.status_code == 401 and "toolkit_" not in answer.text


def test_calls_are_counted_by_tool_and_outcome(plain: Running) -> None:
    async def run(client: Client) -> None:
        await client.call_tool("read_file", {"path": "a.txt"})
        await client.call_tool("read_file", {"path": "missing"})
        await client.call_tool("no\n# such tool", {})

    plain.talk(run)
    found = metrics(plain)
    assert found['toolkit_calls_total{tool="read_file",outcome="ok"}'] == 1
    assert found['toolkit_calls_total{tool="read_file",outcome="error"}'] == 1
    assert found['toolkit_calls_total{tool="unknown",outcome="error"}'] == 1
    assert found["toolkit_calls_running"] == found["toolkit_calls_waiting"] == found["toolkit_handlers_abandoned"] == 0
    assert found["toolkit_sessions_open"] >= 1


def test_helpers_that_had_to_be_started_again_are_counted(tmp_path: Path) -> None:
    folder, policy = tmp_path / "workspace", tmp_path / "policy.toml"
    folder.mkdir()
    policy.write_text('[tools]\nexec_command = "allow"\n')
    audit = ("--audit", str(tmp_path / "audit.jsonl"))
    with serving("--workspace", str(folder), "--policy", str(policy), *audit) as server:

        async def run(client: Client) -> None:
            assert not (await client.call_tool("exec_command", {"command": ["true"]})).is_error
            assert metrics(server)['toolkit_helper_restarts_total{helper="fork_server"}'] == 0
            listed = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True).stdout
            [helper] = [
                int(pid) for pid in listed.split() if b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
            end = os.pidfd_open(helper)
            os.kill(helper, signal.SIGKILL)
            select.select([end], [], [])  # it is gone, so the next command needs another one
            os.close(end)
            assert not (await client.call_tool("exec_command", {"command": ["true"]})).is_error

        server.talk(run)
        found = metrics(server)
    assert found['toolkit_helper_restarts_total{helper="fork_server"}'] == 1
    assert found['toolkit_helper_restarts_total{helper="mcp_server"}'] == 0
    assert found["toolkit_audit_records_waiting"] == 0
