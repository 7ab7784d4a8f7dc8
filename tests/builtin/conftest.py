"""Fixtures for the tests of the built-in tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import toolkit_for
from toolkit.generated import Toolkit


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[Toolkit]:
    with toolkit_for(tmp_path) as toolkit:
        yield toolkit


@pytest.fixture
def snapshots(request: pytest.FixtureRequest) -> Snapshots:
    return Snapshots(update=bool(request.config.getoption("--update-snapshots")))
