"""The files that tools change only with approval, unless the context says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.errors import SetupError
from toolkit.guard.files.consent import Globs

RUNS_LATER: Final[tuple[str, ...]] = (
    # Shells: every session reads one of these.
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
    "config.fish", ".xinitrc", ".xprofile", ".xsession", ".envrc", "mise.toml", ".mise.toml",
    # Editors: tasks, hooks and interpreters of the project that is opened.
    ".vscode", ".idea", ".fleet", ".zed", ".devcontainer", ".devcontainer.json", "*.code-workspace",
    ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".emacs.d", ".dir-locals.el",
    # Agents: their hooks, commands, permissions and servers.
    ".mcp.json", ".claude", ".claude.json", ".codex", ".cursor", ".agents", ".gemini", ".windsurf", ".continue", ".kiro",
    ".aider.conf.yml", ".opencode", "opencode.json",
    # Version control: settings and hooks that name programs.
    ".gitconfig", ".gitmodules", "hgrc", ".hgrc", ".pre-commit-config.yaml", ".husky", "lefthook.yml", ".lefthook.yml",
    # Programs that load what a file in the current or the home directory says.
    ".ripgreprc", ".gdbinit", ".lldbinit", ".pdbrc", ".Rprofile", ".irbrc", ".pryrc", ".ssh",
    # Where the workspace is a home directory.
    ".config/git/**", ".config/fish/**", ".config/autostart/**", ".config/systemd/**", ".local/bin/**",
)  # fmt: skip
"""Files that run code for the user later, without being asked: at the next shell, editor, agent, debugger or git command.

A tool that may write such a file can run code outside the sandbox, in the user's name. So a toolkit asks before one is
written, moved or removed; ``FileSettings(ask_before_writing=...)`` changes the list. The patterns are those of deny
rules: plain names are covered at any depth, with everything below them; those with a slash begin at a root.

Limit: the list is not complete, and it cannot be. What runs only when the user builds, installs or tests (``Makefile``,
``package.json``, ``pyproject.toml``, ``conftest.py``) or on a server (``.github``) is left out: agents edit it all day.
"""


def check_patterns(patterns: object) -> tuple[str, ...]:
    """The patterns of ``ask_before_writing``; a pattern that cannot mean what it says is refused.

    >>> check_patterns([".envrc", "ci/**"])
    ('.envrc', 'ci/**')
    """
    if patterns is RUNS_LATER:
        return RUNS_LATER  # known to be right; reading them takes longer than the rest of building a context
    if isinstance(patterns, str) or not isinstance(patterns, Sequence):
        raise SetupError(f"ask_before_writing must be a list of patterns, not {patterns!r}")
    return Globs(patterns).globs
