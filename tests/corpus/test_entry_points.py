"""Every entry point hands the handlers of real tools what was given."""

from __future__ import annotations

from pathlib import Path

from tests.corpus.entry_points import disagreements
from tests.corpus.project import SharedProject, shared_tools

SAMPLE_EVERY = 60
A_PACKAGE = 400


def test_all_entry_points_agree(corpus: Path, everything: bool, tmp_path: Path) -> None:
    tools = shared_tools(corpus)[:: 1 if everything else SAMPLE_EVERY]
    found: dict[str, list[str]] = {}
    for number, start in enumerate(range(0, len(tools), A_PACKAGE)):
        project = SharedProject(tmp_path, f"part_{number:03}", tools[start : start + A_PACKAGE])
        project.generate()
        found |= disagreements(project)
    assert len(found) > 0.9 * len(tools)
    differing = {name: texts for name, texts in found.items() if texts}
    assert not differing, differing
