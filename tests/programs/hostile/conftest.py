"""Worlds that rows share: each row checks that it left nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.guard.ways import needs
from tests.programs.hostile.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The full tier."""
    made = World(tmp_path_factory.mktemp("full"))
    yield made
    made.close()


@pytest.fixture(scope="module", params=["full", "reduced"])
def each_world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One tier after the other."""
    needs(request.param)
    made = World(tmp_path_factory.mktemp(request.param), request.param)
    yield made
    made.close()
