"""What every test of a built-in tool is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from generated import Toolkit
from tests.builtin.workspace import toolkit_for


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[Toolkit]:
    with toolkit_for(tmp_path) as toolkit:
        yield toolkit
