"""The environment of ``make bench``: its lock has every requirement, and the ordinary environment none of the peers."""

from __future__ import annotations

import re

import pytest

from benchmarks.environment import LOCK, requirements
from tests.projects import REPOSITORY

PEERS = ("fastmcp", "matplotlib", "openai-agents", "pydantic-ai-slim")
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
