"""docs/speed.md shows the committed run: its table has every goal, and its pictures are there and small."""

from __future__ import annotations

import re

import pytest

from benchmarks.comparison import put_comparison
from benchmarks.goals import GOALS, judge
from benchmarks.parts import PARTS
from benchmarks.results import Run
from benchmarks.show import show_goals
from tests.projects import REPOSITORY

PAGE = (REPOSITORY / "docs" / "speed.md").read_text()
PICTURES = re.findall(r"!\[.+\]\((.+)\)", PAGE)
SMALL = 80_000


@pytest.fixture(scope="module")
def committed() -> Run:
    return Run.read(REPOSITORY / "benchmarks" / "baseline.json")


def test_the_committed_run_has_every_part_that_is_not_slow(committed: Run) -> None:
    assert set(committed.parts) >= {part.name for part in PARTS.values() if not part.slow}


def test_the_committed_run_has_a_figure_for_every_goal(committed: Run) -> None:
    assert [report.goal.row for report in judge(committed) if report.figure is None] == []


def test_the_table_of_the_page_is_that_of_the_committed_run(committed: Run) -> None:
    shown = PAGE.partition("<!-- goals -->\n")[2].partition("\n<!-- end of goals -->")[0]
    assert shown == show_goals(judge(committed))
    assert len(shown.splitlines()) == 2 + len(GOALS)


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_there_and_small(picture: str) -> None:
    data = (REPOSITORY / "docs" / picture).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < SMALL


def test_all_pictures_of_the_folder_are_shown() -> None:
    folder = REPOSITORY / "docs" / "speed"
    assert sorted(PICTURES) == sorted(f"speed/{file.name}" for file in folder.iterdir())


def test_a_run_reads_as_it_was_written(committed: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("run") / "run.json"
    committed.write(file)
    assert Run.read(file) == committed


def test_the_comparison_is_that_of_the_committed_run(committed: Run) -> None:
    page = (REPOSITORY / "docs" / "comparison.md").read_text()
    assert put_comparison(page, committed) == page
    assert "**execute_raw(name, text).text()**" in page and "langchain-core" in page
