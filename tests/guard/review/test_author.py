"""The author of a command's commits: the user's name and address, and nothing else of the user's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.ways import ALL, Way, guard_in

NAMES = [
    "Ada Lovelace",
    'Ada "the Countess" Lovelace',
    "back\\slash ] [section]",
    "a # b ; c",
    "Zoë Müller",
    "  spaces  inside  ",
]
OTHERS = """
[alias]
    mine = status
[commit]
    gpgSign = true
[core]
    hooksPath = /nonexistent/hooks
    pager = evil
[credential]
    helper = !evil
"""


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (tmp_path / "ws").mkdir()
    return home / ".gitconfig"


COMMIT = "git init -q && git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>%n%cn'"


@pytest.mark.parametrize("way", ALL)
def test_a_commit_has_the_user_as_its_author(tmp_path: Path, config: Path, way: Way) -> None:
    config.write_text(f"[user]\n\tname = A B\n\temail = a@example.org\n{OTHERS}")
    with guard_in(way, tmp_path / "ws") as guard:
        result = guard.shell(COMMIT)
        assert result.stdout.decode() == "A B <a@example.org>\nA B\n", result.stderr
        listed = guard.shell("git config --global --list --name-only").stdout.decode().split()
        assert listed == ["user.name", "user.email"]
        own = guard.shell("git config user.name mine; git commit -q --allow-empty -m x; git log -1 --format=%an")
        assert (own.stdout == b"mine\n") == (way not in ("full", "bubblewrap"))  # there the settings are read-only


@pytest.mark.parametrize("way", ["full", "bubblewrap", "reduced"])
def test_a_name_of_the_repository_wins(tmp_path: Path, config: Path, way: Way) -> None:
    config.write_text("[user]\n\tname = A B\n\temail = a@example.org\n")
    with guard_in(way, tmp_path / "ws") as guard:
        result = guard.shell(
            "git init -q && git config user.name mine && git commit -q --allow-empty -m x && git log --format=%an"
        )
    assert result.stdout == b"mine\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_special_characters_stays_one_name(tmp_path: Path, config: Path, name: str) -> None:
    config.write_text(f"[user]\n\tname = {quoted(name)}\n\temail = a@example.org\n")
    with guard_in("full", tmp_path / "ws") as guard:
        assert guard.shell("git config user.name").stdout.decode().strip() == name.strip()
        assert guard.shell("git config --global --list --name-only").stdout.split() == [b"user.name", b"user.email"]


def test_a_line_break_in_a_name_adds_no_setting(tmp_path: Path, config: Path) -> None:
    config.write_text('[user]\n\tname = "A\\n[alias]\\n\\tmine = status"\n')
    with guard_in("full", tmp_path / "ws") as guard:
        assert guard.shell("git config --global --list").stdout == b"user.name=A [alias] mine = status\n"


@pytest.mark.parametrize("where", ["GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "include"])
def test_the_configuration_is_found_as_git_finds_it(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    file = tmp_path / "elsewhere/git/config"
    file.parent.mkdir(parents=True)
    file.write_text("[user]\n\tname = A B\n")
    if where == "include":
        config.write_text(f"[include]\n\tpath = {file}\n")
    else:
        monkeypatch.setenv(where, str(file if where == "GIT_CONFIG_GLOBAL" else file.parent.parent))
    with guard_in("full", tmp_path / "ws") as guard:
        assert guard.shell("git config --global --list").stdout == b"user.name=A B\n"


def test_without_a_configuration_there_is_no_file(tmp_path: Path, config: Path) -> None:
    with guard_in("full", tmp_path / "ws") as guard:
        assert guard.shell("ls -A ~").stdout == b""
