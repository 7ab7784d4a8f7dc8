"""What a call runs, in the form that rules on commands compare; and the words of such a rule.

Everything that rules on commands need is imported from here, when the first such rule is made: a policy without one does not
load it, and a toolkit whose policy has one loads nothing later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit.errors import PolicyError
from toolkit.guard.policy.commands.allowed_arguments import find_uncovered, never_allowed
from toolkit.guard.policy.commands.look_through import UNREADABLE, RunCommands, find_run_commands
from toolkit.guard.policy.commands.matching import begins_with, matches_any
from toolkit.guard.policy.commands.shell_words import SHELL_KEYWORDS, plain_commands, run_commands
from toolkit.guard.policy.preview import Preview
from toolkit.guard.process.environment import is_harmless


def read_rule(command: str, decision: Literal["allow", "ask", "deny"]) -> tuple[str, ...]:
    """The words of a rule's command."""
    plain = plain_commands(command)
    first = command.split(" ")[0]
    if first in SHELL_KEYWORDS:
        raise PolicyError(
            f"a rule's command must begin with a program, and {first!r} is a word of the shell itself; name the program"
            " that it runs"
        )
    if plain is None or len(plain) != 1:
        raise PolicyError(f"a rule's command must be one or more plain words such as 'git log', not {command!r}")
    reason = never_allowed(plain[0][0]) if decision == "allow" else None
    if reason is not None:
        raise PolicyError(f"no rule can allow {plain[0][0]!r}: {reason}; use 'ask', or name the program that it runs")
    return plain[0]


@dataclass(frozen=True, slots=True)
class TouchedCommands:
    """The commands of one call, where they start, and with which variables."""

    commands: tuple[tuple[str, ...], ...] | None
    """What the call itself runs, in this order; None if that cannot be read."""
    run: RunCommands
    """Everything that these commands run."""
    in_workspace: bool
    """Whether they start in the workspace's own directory."""
    variables: tuple[str, ...]
    """Names of environment variables that the call sets."""

    @staticmethod
    def from_preview(preview: Preview) -> TouchedCommands:
        own = () if preview.argv is None else (preview.argv,)
        plain = () if preview.shell is None else plain_commands(preview.shell)
        run = run_commands(preview.shell) if plain is None and preview.shell is not None else plain
        return TouchedCommands(
            commands=None if plain is None else (*own, *plain),
            run=UNREADABLE if run is None else find_run_commands((*own, *run)),
            in_workspace=_is_workspace(preview.cwd),
            variables=preview.variables,
        )

    def match(self, words: Sequence[str]) -> bool:
        """For deny and ask: whether a rule with these words matches anything that is run."""
        return matches_any(self.run, words)

    def find_cover(self, rules: Sequence[tuple[str, ...]]) -> Cover:
        """For allow: whether rules with these words, each of which may cover some of the commands, cover all of them."""
        if self.commands is None:
            return Cover(
                None, "allow rules on commands cover only plain words joined by && || ; |" if any(rules) else ""
            )
        odd = next((name for name in self.variables if not is_harmless(name)), None)
        first: int | None = None
        in_workspace = self.in_workspace
        for argv in self.commands:
            found = _find_rule(argv, rules, in_workspace=in_workspace, odd_variable=odd)
            if found.reason or found.rule is None:
                return found if found.reason else self._find_part(rules)
            first = found.rule if first is None else first
            in_workspace = in_workspace and argv[0] != "cd"
        return Cover(first, "")

    def _find_part(self, rules: Sequence[tuple[str, ...]]) -> Cover:
        for place, words in enumerate(rules):
            if words and any(begins_with(argv, words) for argv in self.commands or ()):
                return Cover(place, "it covers only a part of what is run")
        return Cover(None, "")


@dataclass(frozen=True, slots=True)
class Cover:
    """The place of a rule that covers a command; with a ``reason``, of one that comes close and does not."""

    rule: int | None
    reason: str


def _find_rule(
    argv: tuple[str, ...], rules: Sequence[tuple[str, ...]], *, in_workspace: bool, odd_variable: str | None
) -> Cover:
    close = Cover(None, "")
    for place, words in enumerate(rules):
        if not words or not begins_with(argv, words):
            continue
        reason = find_uncovered(argv, len(words), in_workspace=in_workspace)
        if reason is None and odd_variable is not None:
            reason = f"it does not cover a call that sets the environment variable {odd_variable[:40]!r}"
        if reason is None:
            return Cover(place, "")
        close = close if close.reason else Cover(place, reason)
    return close


def _is_workspace(cwd: str) -> bool:
    """Whether a directory is certainly the workspace. ``a/..`` is not: ``a`` may be a link."""
    return not cwd.startswith("/") and {"", "."}.issuperset(cwd.split("/"))
