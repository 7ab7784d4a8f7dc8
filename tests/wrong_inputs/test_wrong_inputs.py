"""What the command line says about wrong inputs, as texts that somebody has read: ``snapshots/<kind>.txt``.

To add a kind, write a module with ``ROWS`` and name it in ``KINDS``. ``pytest tests/wrong_inputs --update-snapshots`` rewrites
the texts; read the diff as the person who made the mistake.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wrong_inputs import imports, settings, specs
from tests.wrong_inputs.rows import describe

KINDS = {"specs": specs.ROWS, "settings": settings.ROWS, "imports": imports.ROWS}
SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_about_wrong(kind: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    texts = []
    for number, row in enumerate(KINDS[kind]):
        folder = tmp_path / f"project_{number}"
        folder.mkdir()
        texts.append(describe(row, folder))
    text = "\n".join(texts)
    file = SNAPSHOTS / f"{kind}.txt"
    if pytestconfig.getoption("--update-snapshots"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), (
        "run pytest tests/wrong_inputs --update-snapshots and read the diff"
    )


def test_every_row_has_a_title_of_its_own() -> None:
    titles = [row.title for rows in KINDS.values() for row in rows]
    assert len(titles) == len(set(titles)) and len(titles) >= 40
