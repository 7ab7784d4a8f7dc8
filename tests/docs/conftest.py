"""One environment for all pages, and each page run once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.environment import Environment, make_environment
from tests.docs.pages import PageRun, open_page


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return make_environment(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="session")
def pages_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def run_page(environment: Environment, pages_folder: Path) -> Callable[[str], PageRun]:
    done: dict[str, PageRun] = {}

    def run(name: str) -> PageRun:
        if name not in done:
            done[name] = open_page(name, environment, pages_folder).run()
        return done[name]

    return run
