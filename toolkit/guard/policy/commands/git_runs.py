"""What a git command runs besides git: aliases, ``bisect run``, ``rebase --exec``, and options that name a program.

Promise: a program that the arguments of git name is found, or the command counts as unreadable, abbreviated options included.

Limit: hooks, and what the configuration of a repository names, are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolkit.guard.policy.commands.shell_words import UNKNOWN_WORDS, plain_commands

# Subcommands and options of git that run a program of the caller's choice in ways that are not looked into.
_OPAQUE: Final = frozenset(
    {
        "difftool", "difftool--helper", "filter-branch", "for-each-repo", "hook", "instaweb", "merge-index", "mergetool",
        "remote-ext", "send-email", "shell", "submodule--helper", "web--browse",
    }
)  # fmt: skip
_OPAQUE_OPTIONS: Final = ("--exec", "--extcmd", "--open-files-in-pager", "--receive-pack", "--upload-pack")
_OPAQUE_OPTIONS_OF: Final = {
    "clone": re.compile(r"-[A-Za-z0-9]*[cu].*|--co.*", re.DOTALL),  # a setting, the program on the other side
    "grep": re.compile(r"-[A-Za-z0-9]*O.*", re.DOTALL),  # the pager
}
_HARMLESS_SETTING: Final = re.compile(
    r"(user\.(name|email)|color\.[a-z.]+|advice\.[a-z]+|core\.(quotepath|autocrlf|filemode)|commit\.gpgsign|"
    r"init\.defaultbranch|log\.date|safe\.directory|protocol\.version|pull\.(ff|rebase)|push\.default)(=.*)?",
    re.IGNORECASE | re.DOTALL,
)
_VALUED: Final = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--attr-source"})


@dataclass(slots=True)
class GitRuns:
    """What a git command runs: commands, and shell text."""

    commands: list[tuple[str, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def find_git_runs(argv: Sequence[str]) -> GitRuns | None:
    """What a git command runs besides git itself; None if that cannot be read.

    >>> find_git_runs(["git", "bisect", "run", "make", "test"]).commands
    [('make', 'test')]
    >>> find_git_runs(["git", "push", "--receive-pack=x"]) is None
    True
    """
    place, aliases = 1, []
    while place < len(argv) and argv[place].startswith("-"):
        word = argv[place]
        if word.startswith(("--config-env", "--exec-path=")):
            return None
        if word == "-c" and place + 1 < len(argv):
            key, _, value = argv[place + 1].partition("=")
            if key.lower().startswith("alias."):
                aliases.append(value)
            elif not _HARMLESS_SETTING.fullmatch(argv[place + 1]):
                return None
        place += 2 if word in _VALUED else 1
    words = tuple(argv[place:])
    if _has_unknown_words(argv[: place + 1]) or len(aliases) > 1:
        return None
    found = _find_subcommand_runs(words)
    for alias in aliases:
        commands = plain_commands(alias.removeprefix("!"))
        if commands is None or found is None:
            return None
        commands[-1] = (*commands[-1], *words[1:])
        found.commands += [command if alias.startswith("!") else ("git", *command) for command in commands]
    return found


def _find_subcommand_runs(words: tuple[str, ...]) -> GitRuns | None:
    name = words[0] if words else ""
    if name in _OPAQUE or (name in ("bisect", "rebase", "submodule") and _has_unknown_words(words)):
        return None
    found = GitRuns()
    if words[:2] == ("bisect", "run"):
        found.commands.append(words[2:])
    elif name == "submodule" and "foreach" in words:
        command = [word for word in words[words.index("foreach") + 1 :] if word not in ("--recursive", "--quiet", "-q")]
        found.texts.append(" ".join(command))
    elif name == "rebase":
        for word, following in zip(words, [*words[1:], ""], strict=True):
            option = re.fullmatch(r"--e(?:x|xe|xec)?(?:=(.*))?|-[A-Za-wyz]*x(.*)", word, re.DOTALL)
            if option is not None:
                found.texts.append(option[1] or option[2] or following)
    elif any(_names_program(name, word) for word in words):
        return None
    return found


def _names_program(subcommand: str, word: str) -> bool:
    """Whether an option, which may be abbreviated to one letter, names a program."""
    own = _OPAQUE_OPTIONS_OF.get(subcommand)
    if own is not None and own.fullmatch(word):
        return True
    option = word.partition("=")[0]
    return len(option) > len("--") and any(full.startswith(option) for full in _OPAQUE_OPTIONS)


def _has_unknown_words(words: Iterable[str]) -> bool:
    return any(UNKNOWN_WORDS in word for word in words)
