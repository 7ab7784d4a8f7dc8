"""Command rules: how a command is compared with a rule word by word.

Deny and ask rules match too much rather than too little (``mentions``, on everything that ``look_through`` finds). Allow
rules compare exactly (``begins_with``), and cover only arguments that are known to be harmless (``allowed_arguments``).

Limit: what a command can really do is decided by the process sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.guard.policy.commands.look_through import RunCommands, name_of
from toolkit.guard.policy.commands.shell_words import UNKNOWN_WORDS

_MAX_COMPARED_WORDS: Final = 20_000  # a rule that is still undecided then is taken to match


def begins_with(argv: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the command begins with the rule's words. Compares words, not text: ``git logout`` is not ``git log``."""
    return tuple(argv[: len(words)]) == tuple(words)


def matches_any(run: RunCommands, words: Sequence[str]) -> bool:
    """Whether a deny or ask rule with these words matches anything that a call runs; what cannot be read is a match."""
    return (
        run.is_unreadable
        or any(mentions(argv, words) for argv in run.by_name.get(name_of(words[0]), ()))
        or any(mentions(argv, words, anywhere=True) for argv in run.behind_runners)
    )


def mentions(argv: Sequence[str], words: Sequence[str], *, anywhere: bool = False) -> bool:
    """Whether a command is one that the rule's words name: with its program by any path, and with other options before or
    between the words (``git -C x push`` is ``git push``). An option among the rule's words may stand anywhere behind.

    ``anywhere``: whether the program may be any word of the command.

    >>> mentions(["/usr/bin/git", "-C", "x", "push"], ["git", "push"]), mentions(["git", "stash", "push"], ["git", "push"])
    (True, False)
    """
    program = name_of(words[0])
    # How many of the rule's words were found, and whether the next word may be the value of an option.
    states: set[tuple[int, bool]] = set()
    for place, word in enumerate(argv):
        states = _step(states, word, words)
        if (anywhere or place == 0) and name_of(word) == program:
            states.add((1, False))
        if any(found == len(words) for found, _ in states):
            return True
        if not states and not anywhere:
            return False
        if place == _MAX_COMPARED_WORDS:
            return True
    return False


def _step(states: set[tuple[int, bool]], word: str, words: Sequence[str]) -> set[tuple[int, bool]]:
    if not states:
        return states
    if UNKNOWN_WORDS in word:
        return {(len(words), False)}
    is_option = word.startswith("-")
    following: set[tuple[int, bool]] = set()
    for found, may_be_value in states:
        if word == words[found]:
            following.add((found + 1, False))
        if is_option or may_be_value or words[found].startswith("-"):
            following.add((found, is_option))
    return following
