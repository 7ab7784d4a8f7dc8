"""Worlds that rows share: each row checks that it left nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from tests.guard.ways import needs
from tests.programs.hostile.world import World
from toolkit.guard import SandboxChoice


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The full tier."""
    made = World(tmp_path_factory.mktemp("full"))
    yield made
    made.close()


@pytest.fixture(scope="module", params=["full", "reduced"])
def way(request: pytest.FixtureRequest) -> SandboxChoice:
    """One tier after the other; of the reduced one, a sample."""
    chosen: Literal["full", "reduced"] = request.param
    needs(chosen)
    return chosen


@pytest.fixture(scope="module")
def each_world(way: SandboxChoice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world in that tier."""
    made = World(tmp_path_factory.mktemp(way), way)
    yield made
    made.close()
