"""The checkers behind the static promises: each finds what is wrong, and none passes for clean by not running."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, mypy


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_is_clean_and_wrong_is_told(checker: str, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text("number: int = 1\n")
    wrong.write_text("\nnumber: int = ''\n")
    assert CHECKERS[checker]([right], tmp_path).errors == {}
    assert list(CHECKERS[checker]([right, wrong], tmp_path).errors) == [("wrong.py", 2)]


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_file_that_is_not_there_is_not_clean(checker: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"did not do its work|was not understood"):
        CHECKERS[checker]([tmp_path / "gone.py"], tmp_path)


def test_an_option_mypy_does_not_know_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text("")
    with pytest.raises(AssertionError, match="did not do its work"):
        mypy([tmp_path / "right.py"], tmp_path, "--no-such-option")
