"""The suite, and a server with the tools that it expects."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance_suite import Suite, find_suite
from tests.projects import run
from tests.serve.conformance.server import serve_http

PROJECT = Path(__file__).parent / "project"
POLICY = """
default = "allow"

[tools]
test_elicitation = "ask"
test_input_required_result_elicitation = "ask"
test_input_required_result_tampered_state = "ask"
"""


@pytest.fixture(scope="session")
def suite(request: pytest.FixtureRequest) -> Suite:
    return find_suite(request)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the project beside this file, generated now."""
    root = tmp_path_factory.mktemp("conformance")
    project = shutil.copytree(PROJECT, root / "project")
    run([sys.executable, "-m", "toolkit", "generate"], project)
    (root / "workspace").mkdir()
    (root / "policy.toml").write_text(POLICY)
    options = ["--package", "everything.generated", "--workspace", "../workspace", "--policy", "../policy.toml"]
    with serve_http(project, *options) as url:
        yield url
