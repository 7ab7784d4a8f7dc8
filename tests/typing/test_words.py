"""What checkers say about the usual mistakes: few words, the right ones, and as docs/what-checkers-say.md shows them."""

from __future__ import annotations

import pytest

from tests.projects import REPOSITORY
from tests.typing.words import MISTAKES, SPEAKERS, page, said_by

pytestmark = pytest.mark.xdist_group("typing")
DOCUMENT = REPOSITORY / "docs" / "what-checkers-say.md"
PLAIN = "A plain variable"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    return {speaker.name: said_by(speaker, tmp_path_factory.mktemp(speaker.name)) for speaker in SPEAKERS}


def test_every_mistake_is_an_error_for_every_checker(said: dict[str, dict[str, str]]) -> None:
    silent = [(name, title) for name, words in said.items() for title in MISTAKES if not words[title]]
    # Pyrefly remembers the keys of a dict display, so a plain variable is what it seems to be.
    assert silent == [("pyrefly", PLAIN)]


def test_mypy_says_a_line_for_each_argument(said: dict[str, dict[str, str]]) -> None:
    lines = {title: words.count("\n") for title, words in said["mypy"].items()}
    assert lines == {title: 1 if ".lines" in code or "Policy" in code else 2 for title, code in MISTAKES.items()}


def test_mypy_with_the_plugin_says_one_line_for_each_mistake(said: dict[str, dict[str, str]]) -> None:
    assert {words.count("\n") for words in said["mypy with plugin"].values()} == {1}


def test_mypy_reports_nothing_more_about_a_wrong_call(said: dict[str, dict[str, str]]) -> None:
    assert "union-attr" not in "".join(said["mypy"].values())


@pytest.mark.parametrize("title", [title for title, code in MISTAKES.items() if 'invoke("read_file"' in code])
def test_pyright_blames_the_named_tool(said: dict[str, dict[str, str]], title: str) -> None:
    assert "ReadFile" in said["pyright"][title]
    assert "JsonObject" not in said["pyright"][title]


def test_pyright_says_that_the_name_is_unknown(said: dict[str, dict[str, str]]) -> None:
    assert "JsonObjectForUnknownName" in said["pyright"]["A tool that does not exist"]


def test_the_page_shows_what_they_say(said: dict[str, dict[str, str]], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-snapshots"):
        DOCUMENT.write_text(page(said), encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == page(said), (
        "run pytest tests/typing/test_words.py --update-snapshots and read the diff"
    )
