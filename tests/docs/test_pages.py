"""Every code block of the README and of docs is run or read, and passes type checkers, where only the wheel is installed.

``tests/docs/blocks.py`` says how a page names its files and what it does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from zlib import crc32

import pytest

from tests.conftest import MACHINE_LACKS
from tests.docs.blocks import DATA, RUN, SHOWN, read_blocks
from tests.docs.checkers import check_with_mypy, check_with_pyright
from tests.docs.environment import Environment
from tests.docs.pages import PAGES, PageRun
from toolkit.guard.process.tier import pick_tier

pytestmark = pytest.mark.xdist_group("pages")

SANDBOXED = {
    "README.md", "docs/tutorial.md", "docs/approvals.md", "docs/programs.md", "docs/sandbox.md", "docs/serving.md",
    "docs/migrating/fastmcp.md",
}  # fmt: skip
"""Pages that run a command, a program or a local server."""
WITH_BLOCKS = [name for name, page in PAGES.items() if read_blocks(page)]
FIRST_READ = {"README.md", "docs/tutorial.md"}
IN_MAKE_TEST = {name for name in WITH_BLOCKS if name in FIRST_READ or crc32(name.encode()) % 4 == 0}
"""Those that everybody reads first, and a fixed fourth of the others."""


def runnable_pages(names: Iterable[str] = WITH_BLOCKS) -> list[str]:
    return [name for name in names if name not in SANDBOXED or pick_tier("full", "auto").name != "none"]


@pytest.mark.every_row
@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_a_language_that_is_run_or_read_and_every_exemption_a_reason(name: str) -> None:
    for block in read_blocks(PAGES[name]):
        assert block.language in ("python", *RUN, *DATA, *SHOWN), f"{name}:{block.line}: {block.language!r}"
        assert not block.exemption or len(block.reason) > 10, f"{name}:{block.line}: give a reason"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in IN_MAKE_TEST else pytest.mark.whole) for name in WITH_BLOCKS],
)
def test_the_page_runs_as_it_is_written(name: str, run_page: Callable[[str], PageRun]) -> None:
    if name not in runnable_pages():
        pytest.skip(f"{MACHINE_LACKS} sandbox: {pick_tier('full', 'auto').reason}")
    assert "\n\n".join(run_page(name).problems) == ""


@pytest.mark.slow
def test_the_pages_pass_mypy_strict(
    run_page: Callable[[str], PageRun], environment: Environment, everything: bool
) -> None:
    names = runnable_pages(WITH_BLOCKS if everything else sorted(IN_MAKE_TEST))
    assert "\n".join(check_with_mypy(map(run_page, names), environment)) == ""


@pytest.mark.whole
@pytest.mark.slow
def test_the_pages_pass_pyright(
    run_page: Callable[[str], PageRun], environment: Environment, pages_folder: Path
) -> None:
    assert "\n".join(check_with_pyright(map(run_page, runnable_pages()), environment, pages_folder)) == ""
