"""Every test that takes ``resolver`` runs twice: with the kernel's resolver and with the walk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.guard import ResolverName, has_openat2


@pytest.fixture(params=["openat2", "walk"])
def resolver(request: pytest.FixtureRequest) -> ResolverName:
    name: ResolverName = request.param
    if name == "openat2" and not has_openat2():
        pytest.skip("this kernel has no openat2")
    return name


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, if the machine has one: for tests with thousands of writes."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)
