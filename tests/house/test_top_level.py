"""What stands at the top of the tree is agreed: anything else is a stray file."""

from __future__ import annotations

import subprocess

import pytest

from tests.projects import REPOSITORY

AGREED = {
    ".ci", ".editorconfig", ".gitignore", ".pre-commit-config.yaml", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "benchmarks", "codegen", "docs", "examples", "generated", "pyproject.toml", "requirements.lock", "stubs",
    "tests", "toolkit",
}  # fmt: skip


def test_no_stray_file_at_the_top() -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("this is no checkout, so nobody says which files belong to it")
    done = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert {path.partition("/")[0] for path in done.stdout.splitlines()} <= AGREED


@pytest.mark.parametrize("lock", ["requirements.lock", "benchmarks/requirements.lock"])
def test_the_lock_names_no_index(lock: str) -> None:
    lines = (REPOSITORY / lock).read_text().splitlines()
    assert not [line for line in lines if line.startswith("-") or "://" in line]
    assert [line for line in lines if "--hash=sha256:" in line]
