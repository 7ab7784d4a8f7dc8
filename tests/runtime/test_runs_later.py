"""The list of files that run code for the user later: what it covers, what it leaves alone, and how a context takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit import FileSettings, SecurityPolicy, ToolkitContext
from toolkit.errors import SetupError
from toolkit.guard import RUNS_LATER
from toolkit.guard.files.consent import Forms, Globs, fold_all


def is_covered(path: str) -> bool:
    return Globs(RUNS_LATER).cover(Forms([fold_all(path.split("/"))], []))


@pytest.mark.every_row
@pytest.mark.parametrize(
    "path",
    [
        ".vscode/tasks.json", ".VSCode/settings.json", "packages/web/.vscode/settings.json", ".idea/workspace.xml", ".mcp.json",
        ".gitmodules", ".envrc", "deep/er/.envrc", ".pre-commit-config.yaml", ".bashrc", ".bash_profile", ".zshenv", ".profile",
        ".config/fish/config.fish", ".gitconfig", ".ripgreprc", ".claude/settings.json", ".cursor/mcp.json", ".codex/config.toml",
        ".husky/pre-commit", ".devcontainer/devcontainer.json", ".rprofile", "opencode.json", "web/app.code-workspace", "mise.toml",
        ".config/git/config", ".config/fish/conf.d/x.fish", ".config/autostart/x.desktop", ".local/bin/ls",
    ],
)  # fmt: skip
def test_what_runs_later_is_covered_at_any_depth(path: str) -> None:
    assert is_covered(path)


@pytest.mark.parametrize(
    "path",
    [
        "pyproject.toml", "package.json", "Makefile", ".github/workflows/ci.yml", ".gitignore", ".gitattributes", ".editorconfig",
        "vscode/tasks.json", "src/profile", "login", "docs/.env.example", "conftest.py", "setup.cfg", ".npmrc", "Dockerfile",
    ],
)  # fmt: skip
def test_what_agents_edit_all_day_is_not(path: str) -> None:
    assert not is_covered(path)


def context(tmp_path: Path, **settings: Any) -> ToolkitContext:
    return ToolkitContext(tmp_path, SecurityPolicy(), **settings)


def test_a_context_takes_the_list_or_another_one(tmp_path: Path) -> None:
    assert context(tmp_path).ask_before_writing == RUNS_LATER
    assert context(tmp_path, files=FileSettings(ask_before_writing=["ci/**", ".envrc"])).ask_before_writing == (
        "ci/**",
        ".envrc",
    )
    assert context(tmp_path, files=FileSettings(ask_before_writing=())).ask_before_writing == ()


@pytest.mark.parametrize("wrong", [".envrc", None, 3, [3], ["["], [""], ["../x"]])
def test_a_list_that_cannot_mean_what_it_says_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(SetupError):
        context(tmp_path, files=FileSettings(ask_before_writing=wrong))
