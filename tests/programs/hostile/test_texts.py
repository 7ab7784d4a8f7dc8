"""Texts that are made to be hard to read. They are read in the agent's process, so nothing would end it.

What once took minutes takes a second or two now; that the test ends is what it asserts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.hostile.world import ALLOWED
from toolkit import ProgramSettings, Toolkit, ToolkitContext, create_agent_toolkit

TEXTS = {
    "a name with many dots": "import " + "a." * 100_000 + "b",
    "a name with many dots in many lines": "import " + "a.\\\n" * 50_000 + "b",
    "an f-string of many lines": "x = f'''" + "{1}\n" * 10_000 + "'''",
    "a line of many records": "x = [" + "{'é': 1}," * 8_000 + "]",
    "one very long word": "x" * 250_000,
    "brackets that are not closed": "(" * 150 + "[" * 40,
    "operators": "-" * 200_000 + "1",
    "unknown tools": "tools.x\n" * 10_000,
}


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolkit]:
    base: Path = tmp_path_factory.mktemp("texts")
    (base / "workspace").mkdir()
    # A text that passes the gate has no time left to be checked.
    context = ToolkitContext(
        base / "workspace", ALLOWED, state_dir=base / "state", programs=ProgramSettings(source_bytes=1 << 19)
    )
    with create_agent_toolkit(context) as made:
        yield made


@pytest.mark.sample
@pytest.mark.parametrize("name", TEXTS)
def test_it_is_refused_or_checked_in_time(toolkit: Toolkit, name: str) -> None:
    result = toolkit.with_options(deadline=20).run_program(TEXTS[name], checker="mypy")
    assert len(result.errors) <= 21
    assert all(len(error.message) < 2100 for error in result.errors)
    assert not result.calls
