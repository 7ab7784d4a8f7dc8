"""The wheel under the other versions of Python that this machine has: a first program, a project, and our own tests."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.projects import REPOSITORY
from tests.wheel.installed import Installed, build, find_python, install
from tests.wheel.test_wheel import check_project, check_types, write_project

pytestmark = [pytest.mark.whole, pytest.mark.xdist_group("scale")]

VERSIONS = ("3.12", "3.13")
FOLDERS = (
    *("runtime", "loop", "models", "wire", "spec", "jsonschema", "testing", "builtin", "guard"),
    *("files", "git", "web", "processes", "stores", "faults"),
)
"""Tests that need no source tree. Threads, forks and processes are where versions differ: these start most of them."""
READ_THE_SOURCES = (
    "runtime/test_failure_reasons.py",
    "runtime/test_lazy_handlers.py",
    "testing/test_page.py",
    "builtin/test_spec_examples.py",
    # These start interpreters of layouts of their own, which import the toolkit from the source tree.
    *("guard/trusted", "runtime/test_late_imports.py", "runtime/test_import_paths.py"),
)
"""Tests in these folders that need files of the checkout, which are not there."""

UNREACHABLE = ("Failed to fetch", "error sending request", "Network connectivity is disabled")
"""What uv says without a package registry. A lock that does not fit the version is said in other words, and is a failure."""


@pytest.fixture(scope="module", params=VERSIONS)
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    python = find_python(request.param)
    if python is None:
        pytest.skip(f"there is no Python {request.param} on this machine, neither on the path nor from pyenv")
    root = tmp_path_factory.mktemp(f"python{request.param}")
    lock = ("--require-hashes", "-r", str(REPOSITORY / "requirements.lock"))
    try:
        return install(python, build("wheel", root), root, *lock)
    except AssertionError as error:
        if any(sign in str(error) for sign in UNREACHABLE):
            pytest.skip(
                f"the locked packages for Python {request.param} cannot be fetched: no package registry answers"
            )
        raise


def test_the_first_program_of_the_readme(other: Installed, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "README.md", tmp_path)
    first = re.search(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    assert first is not None
    (tmp_path / "first.py").write_text(first[1])
    Installed(other.environment, tmp_path).run("python", "-W", "error", "first.py")


def test_a_project_needs_only_the_wheel(other: Installed, tmp_path: Path) -> None:
    write_project(other.project)
    check_project(other, tmp_path)
    check_types(other, tmp_path)


@pytest.mark.parametrize("folder", FOLDERS)
def test_our_own_tests_pass(other: Installed, folder: str, tmp_path: Path) -> None:
    for name in ("tests", "examples"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, tmp_path)
    left_out = [f"--ignore=tests/{file}" for file in READ_THE_SOURCES]
    made = Installed(other.environment, tmp_path)
    where = made.run("python", "-c", "import toolkit; print(toolkit.__file__)").stdout
    assert Path(where.strip()).is_relative_to(other.environment)
    made.run("python", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *left_out, f"tests/{folder}")
