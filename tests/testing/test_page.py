"""The programs of docs/testing.md: a folder of tests that pass, and are clean under mypy --strict."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY, run

PAGE = (REPOSITORY / "docs" / "testing.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:langsmith_plugin -p no:anyio\n")
    assert len(list(tmp_path.glob("*.py"))) == PAGE.count("```python\n")
    return tmp_path


@pytest.mark.slow
def test_the_tests_of_the_page_pass(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    first = run([*command, "--update-transcripts"], folder).stdout
    assert run(command, folder).stdout.split(" in ")[0] == first.split(" in ")[0]
    [transcript] = (folder / "transcripts").rglob("*.txt")
    assert transcript.relative_to(folder).as_posix() in PAGE
    assert f"```text\n{transcript.read_text()}```" in PAGE


@pytest.mark.slow
def test_the_tests_of_the_page_are_clean_under_mypy(folder: Path) -> None:
    files = sorted(file.name for file in folder.glob("*.py"))
    checked = run([sys.executable, "-m", "mypy", "--strict", *files], folder)
    assert f"no issues found in {len(files)} source files" in checked.stdout
