"""The official conformance suite for MCP clients, as far as it is on this machine, and one run of a scenario."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
"""The first version that lists what each revision of the protocol requires; the newest stable one (0.1.16) does not."""
NODE = "22.23.3"
OLDEST_NODE = 22
SECONDS = 300
"""No scenario takes more than a few; a busy machine may need many times as long."""
FOLDER = "TOOLKIT_MCP_CONFORMANCE"
"""A variable that names a folder into which the suite, and a node that is new enough, were installed with npm."""


@dataclass(frozen=True)
class Suite:
    """An installed suite."""

    node: Path
    program: Path

    def run(self, scenario: str, revision: str, folder: Path) -> str:
        """What is wrong with our client in one scenario, as the suite words it; empty if nothing is."""
        state = folder / "state"
        state.mkdir(parents=True)
        client = f"{sys.executable} -m tests.packs.conformance.client"
        # Without --force the suite does not run extensions, which belong to no revision.
        options = ["--scenario", scenario, "--spec-version", revision, "--force", "-o", str(folder / "out")]
        done = subprocess.run(
            [self.node, self.program, "client", "--command", client, "--timeout", str(SECONDS * 1000), *options],
            cwd=REPOSITORY,
            env={**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
        )
        checks = [check for file in (folder / "out").rglob("checks.json") for check in json.loads(file.read_text())]
        judged = {check["status"] for check in checks}
        assert judged & {"SUCCESS", "FAILURE"}, f"the suite judged nothing: {done.stdout[-500:]}{done.stderr[-500:]}"
        wrong = [check for check in checks if check["status"] not in ("SUCCESS", "INFO", "SKIPPED")]
        if done.returncode == 0 and not wrong:
            return ""
        said = [f"{check['id']}: {check.get('errorMessage') or check['description']}" for check in wrong]
        output = [file.read_text() for file in (folder / "out").rglob("std*.txt")]
        return "\n".join([*said, *output, done.stdout[-500:], done.stderr[-500:]])

    def required(self, revision: str) -> list[str]:
        """The scenarios that a revision of the protocol requires of every client."""
        text = (self.program.parents[1] / "requirements" / f"{revision}.yaml").read_text()
        return re.findall(r"^  - (\S+)", text.partition("client:")[2].partition("\n\n")[0], re.MULTILINE)

    def listed(self) -> list[str]:
        """All scenarios for clients that the suite has."""
        done = subprocess.run(
            [self.node, self.program, "list", "--client"], capture_output=True, text=True, timeout=120, check=True
        )
        return re.findall(r"^  - (\S+)", done.stdout, re.MULTILINE)


def find_suite(cache: Path) -> Suite:
    """The suite in the folder that a variable names, or installed into ``cache`` with npm; skips where there is neither."""
    given = os.environ.get(FOLDER)
    root = Path(given) if given else cache
    root.mkdir(exist_ok=True)
    with (root / "lock").open("w") as lock:  # other workers of pytest may install it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _program(root).exists() and not given:
            _install(root)
    node = _find_node(root)
    if node is None or not _program(root).exists():
        pytest.skip(f"{root} lacks {' or '.join(_packages())}")
    return Suite(node, _program(root))


def _program(root: Path) -> Path:
    return root / "node_modules" / PACKAGE / "dist" / "index.js"


def _node_package() -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"node-{sys.platform}-{machine}"


def _packages() -> list[str]:
    return [f"{PACKAGE}@{VERSION}", f"{_node_package()}@{NODE}"]


def _find_node(root: Path) -> Path | None:
    """A node that the suite runs on."""
    for node in (shutil.which("node"), root / "node_modules" / _node_package() / "bin" / "node"):
        if node is not None and Path(node).exists():
            version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout
            if int(version.lstrip("v").partition(".")[0]) >= OLDEST_NODE:
                return Path(node)
    return None


def _install(root: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is not on this machine: install it, or name a folder with {PACKAGE} in {FOLDER}")
    options = ["--prefix", str(root), "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        subprocess.run(
            [npm, "install", *options, *_packages()], capture_output=True, text=True, timeout=120, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        said = getattr(error, "stderr", None) or error
        pytest.skip(f"npm could not install {PACKAGE}, perhaps without a network: {str(said)[-300:]}")
