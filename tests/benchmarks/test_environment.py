"""The environment of ``make bench``: its lock has every requirement, and the ordinary environment none of the peers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks.environment import LOCK, requirements, set_up
from tests.projects import REPOSITORY

PEERS = ("fastmcp", "matplotlib", "openai-agents", "pydantic-ai-slim", "pydantic-monty")
"""What only the benchmarks need. The drivers' tests also use anthropic and langchain-core."""


def locked(text: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))


def test_the_lock_has_every_requirement() -> None:
    wanted = {re.split(r"[<>=\[]", one)[0].lower() for one in requirements()}
    assert wanted >= {*PEERS, "anthropic", "langchain-core", "pydantic"}
    assert wanted - locked(LOCK.read_text()) == set()


@pytest.mark.parametrize("peer", PEERS)
def test_the_lock_of_the_project_stays_without_peers(peer: str) -> None:
    assert peer not in locked((REPOSITORY / "requirements.lock").read_text())


UV = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in {refused}) exit 1;; esac
"""


def install(folder: Path, refused: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What could not be installed, and what uv was asked for, with a uv that refuses something."""
    (folder / "uv").write_text(UV.replace("{refused}", refused))
    (folder / "uv").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("LOG", str(folder / "log"))
    failed = set_up(folder / "environment")
    return failed, (folder / "log").read_text().splitlines()


def test_everything_is_installed_as_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed, asked = install(tmp_path, "nothing", monkeypatch)
    assert failed == []
    assert [f"--require-hashes --requirement {LOCK}" in asked[0], "--editable" in asked[1], len(asked)] == [
        True,
        True,
        2,
    ]


def test_a_requirement_that_cannot_be_installed_is_named_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, asked = install(tmp_path, "*--require-hashes*|*fastmcp*", monkeypatch)
    assert failed == ["fastmcp>=4.1"]
    assert len(asked) == 1 + len(requirements()) + 1
    assert all(f"--constraint {LOCK}" in line for line in asked[1:-1])
