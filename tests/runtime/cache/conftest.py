"""A cache in its own directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit import FileOutputCache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "outputs"


@pytest.fixture
def cache(folder: Path) -> Iterator[FileOutputCache]:
    cache = FileOutputCache(str(folder))
    yield cache
    cache.close()
