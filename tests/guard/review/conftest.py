"""A fresh copy of the repositories for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.review.world import Repositories, build, copy_world


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("repositories")
    build(base)
    return base


@pytest.fixture
def make_world(template: Path, tmp_path: Path) -> Callable[[str], Repositories]:
    return lambda name: copy_world(template, tmp_path / name)


@pytest.fixture
def world(make_world: Callable[[str], Repositories]) -> Repositories:
    return make_world("world")
