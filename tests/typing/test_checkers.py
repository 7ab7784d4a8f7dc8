"""The type checkers themselves: each finds errors, and a checker that did not run does not count as clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, mypy


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_is_clean_and_wrong_is_reported(checker: str, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text("number: int = 1\n")
    wrong.write_text("\nnumber: int = ''\n")
    assert CHECKERS[checker]([right], tmp_path).errors == {}
    assert list(CHECKERS[checker]([right, wrong], tmp_path).errors) == [("wrong.py", 2)]


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_file_that_is_not_there_is_not_clean(checker: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"did not check everything|was not understood"):
        CHECKERS[checker]([tmp_path / "gone.py"], tmp_path)


def test_an_option_mypy_does_not_know_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text("")
    with pytest.raises(AssertionError, match="did not check everything"):
        mypy([tmp_path / "right.py"], tmp_path, "--no-such-option")
