"""What tests of servers are given: a workspace with a few files, and a policy file beside it."""

from __future__ import annotations

from pathlib import Path

import pytest


def fill(folder: Path) -> None:
    """The folder with one file in it, whatever was there before."""
    for file in folder.iterdir():
        file.unlink()
    (folder / "a.txt").write_text("one\ntwo\n")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    fill(folder)
    return folder


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Reading is allowed, writing and commands are asked about."""
    file = tmp_path / "policy.toml"
    file.write_text(
        'default = "deny"\n[tools]\nread_file = "allow"\nwrite_file = "ask"\nedit = "ask"\nexec_command = "ask"\n'
    )
    return file
