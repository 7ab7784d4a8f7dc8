"""The site builds without a warning and without the network, and links work on a code host and on the site alike."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import read_blocks
from tests.docs.pages import PAGES
from tests.projects import REPOSITORY
from toolkit.guard import SandboxFS

pytestmark = pytest.mark.xdist_group("pages")

TOP = [REPOSITORY / name for name in ("ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")]
LINK = re.compile(r"\]\((?P<target>[^)\s#]*)(?:#(?P<anchor>[^)\s]*))?\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    config = REPOSITORY / "docs" / "site" / "mkdocs.yml"
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            f"--config-file={config}",
            f"--site-dir={folder}",
        ],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.whole
@pytest.mark.slow
def test_every_page_is_on_the_site(site: Path) -> None:
    made = {file.relative_to(site).as_posix() for file in site.rglob("*.html")}
    wanted = {name.removeprefix("docs/").replace(".md", ".html") for name in PAGES if name != "README.md"}
    assert wanted | {"index.html", "architecture.html", "security.html", "changelog.html"} <= made


@pytest.mark.whole
@pytest.mark.slow
def test_files_are_shown_with_every_method(site: Path) -> None:
    page = (site / "reference" / "guard.html").read_text()
    shown = re.findall(r'id="?toolkit\.guard\.SandboxFS\.(\w+)', page)
    assert {name for name in dir(SandboxFS) if not name.startswith("_")} <= set(shown)


@pytest.mark.whole
@pytest.mark.slow
def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\"\s>]+)", page.read_text())
        assert loaded == [], page.name


@pytest.mark.whole
@pytest.mark.slow
def test_the_reference_has_the_examples_of_docstrings_as_code(site: Path) -> None:
    shown = (site / "reference/loop.html").read_text()
    assert 'id="toolkit.loop.run"' in shown and "&gt;&gt;&gt; " in shown


@pytest.mark.whole
@pytest.mark.slow
def test_only_a_code_host_shows_that_a_page_of_the_reference_is_not_filled_in(site: Path) -> None:
    note = "This page is filled in on the built site"
    unfilled = [name for name, page in PAGES.items() if re.search(r"^::: ", page.read_text(), re.MULTILINE)]
    assert unfilled
    for name in unfilled:
        assert note in PAGES[name].read_text(), name
        assert note not in (site / name.removeprefix("docs/").replace(".md", ".html")).read_text(), name


@pytest.mark.every_row
@pytest.mark.parametrize("page", [*PAGES.values(), *TOP], ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_to_files_and_headings_of_the_repository(page: Path) -> None:
    text = page.read_text()
    for block in read_blocks(page):
        text = text.replace(block.text, "")
    for link in LINK.finditer(re.sub(r"`[^`\n]*`", "", text)):
        target = (page.parent / link["target"]).resolve() if link["target"] else page
        if ":" in link["target"]:
            continue
        assert target.exists(), f"{page.name}: {link[0]}"
        assert not link["anchor"] or link["anchor"] in headings(target), f"{page.name}: {link[0]}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as code hosts name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
