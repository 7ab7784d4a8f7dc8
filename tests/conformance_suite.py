"""The official conformance suite for MCP, as far as it is on this machine: its scenarios, and runs of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

from tests.node_programs import NodePackage, NodeProgram, find_program
from tests.projects import REPOSITORY

PACKAGE = NodePackage("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "dist/index.js")
"""The first version that lists what each revision of the protocol requires; the newest stable one (0.1.16) does not."""
SECONDS = 300
"""No scenario takes more than a few; a busy machine may need many times as long."""
Role: TypeAlias = Literal["client", "server"]


@dataclass(frozen=True)
class Verdict:
    """What the suite found in one scenario."""

    wrong: Mapping[str, str]
    """What is wrong, by the id of the check."""
    is_judged: bool
    """Whether anything was judged beside the form of the messages."""


@dataclass(frozen=True)
class Suite:
    """An installed suite."""

    program: NodeProgram

    def run_client(self, module: str, scenario: str, revision: str, folder: Path) -> str:
        """What is wrong with a client, a module of ours, in one scenario, as the suite words it; empty if nothing is."""
        state = folder / "state"
        state.mkdir(parents=True)
        # Without --force the suite does not run extensions, which belong to no revision.
        options = ["--scenario", scenario, "--spec-version", revision, "--force", "-o", str(folder / "out")]
        command = ["client", "--command", f"{sys.executable} -m {module}", "--timeout", str(SECONDS * 1000), *options]
        done = subprocess.run(
            self.program.command(*command),
            cwd=REPOSITORY,
            env={**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
        )
        checks = [check for file in (folder / "out").rglob("checks.json") for check in json.loads(file.read_text())]
        judged = {check["status"] for check in checks}
        assert judged & {"SUCCESS", "FAILURE"}, f"the suite judged nothing: {done.stdout[-500:]}{done.stderr[-500:]}"
        wrong = _find_wrong(checks)
        if done.returncode == 0 and not wrong:
            return ""
        output = [file.read_text() for file in (folder / "out").rglob("std*.txt")]
        said = [f"{name}: {text}" for name, text in wrong.items()]
        return "\n".join([*said, *output, done.stdout[-500:], done.stderr[-500:]])

    def run_server(self, url: str, options: list[str], folder: Path) -> dict[str, Verdict]:
        """The verdicts about the server at an address, by scenario. One process of node runs all that the options name."""
        command = ["server", "--url", url, "--timeout", str(SECONDS * 1000), "-o", str(folder), *options]
        done = subprocess.run(
            self.program.command(*command), capture_output=True, text=True, timeout=2 * SECONDS, cwd=folder
        )
        verdicts = {}
        for file in folder.rglob("checks.json"):
            found = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)
            assert found is not None, file
            verdicts[found[1]] = _read_verdict(json.loads(file.read_text()))
        assert verdicts, f"the suite ran nothing: {done.stdout[-500:]}{done.stderr[-500:]}"
        return verdicts

    def required(self, role: Role, revision: str) -> list[str]:
        """The scenarios that a revision of the protocol requires."""
        text = (self.program.file.parents[1] / "requirements" / f"{revision}.yaml").read_text()
        found = re.search(rf"^{role}:\n((?:  - \S+\n)+)", text, re.MULTILINE)
        assert found is not None
        return re.findall(r"- (\S+)", found[1])

    def listed(self, role: Role) -> list[str]:
        """All scenarios for a role that the suite has."""
        command = self.program.command("list", f"--{role}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return re.findall(r"^  - (\S+)", done.stdout, re.MULTILINE)


def find_suite(request: pytest.FixtureRequest) -> Suite:
    """The suite; skips where it cannot be had."""
    return Suite(find_program(PACKAGE, request))


def _read_verdict(checks: list[dict[str, Any]]) -> Verdict:
    own = [check for check in checks if not check["id"].startswith("wire-schema-")]
    return Verdict(_find_wrong(checks), any(check["status"] not in ("INFO", "SKIPPED") for check in own))


def _find_wrong(checks: Iterable[dict[str, Any]]) -> dict[str, str]:
    return {
        check["id"]: check.get("errorMessage") or check["description"]
        for check in checks
        if check["status"] not in ("SUCCESS", "INFO", "SKIPPED")
    }
