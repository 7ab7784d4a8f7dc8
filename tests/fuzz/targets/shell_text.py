"""Shell text, as the policy reads it."""

from __future__ import annotations

import shlex
from typing import Final

from toolkit.guard import Preview, Rule, SecurityPolicy
from toolkit.guard.policy.commands import plain_commands, run_commands
from toolkit.guard.policy.rule import Decision

DENYING: Final[tuple[Decision, ...]] = ("deny", "ask")
OPERATORS: Final = {"&&", "||", ";", "|"}


def check_shell_text(data: bytes) -> None:
    """Plain commands are those that a shell splits in the same way; rules on them deny, ask and do not allow too much."""
    text = data.decode(errors="replace")
    plain, run = plain_commands(text), run_commands(text)
    if plain is not None:
        # That reader does not tell a quoted operator from a real one.
        if not any(word in OPERATORS for argv in plain for word in argv):
            assert plain == _split(text), "a shell reads other commands"
        # Inside `zsh -c`, `=name` is a path: deny rules do not read that.
        assert run in (plain, None), "what is plain is read in another way by deny rules"
        for argv in plain:
            for decision in DENYING:
                rule: Rule[str] = Rule(decision, command=argv[0])
                policy: SecurityPolicy[str] = SecurityPolicy("allow", rules=[rule])
                assert policy._judge("bash", ["execute"], Preview(shell=text)).decision == decision, "a rule was passed"
    allowing: SecurityPolicy[str] = SecurityPolicy("deny", rules=[Rule("allow", command="git log")])
    allowed = allowing._judge("bash", ["execute"], Preview(shell=text)).decision == "allow"
    assert not allowed or plain is not None and all(argv[:2] == ("git", "log") for argv in plain), "allowed too much"


def _split(text: str) -> list[tuple[str, ...]]:
    """The commands as the standard library's reader of POSIX shell text sees them."""
    reader = shlex.shlex(text, posix=True, punctuation_chars="&|;")
    reader.whitespace_split = True
    reader.commenters = ""
    commands: list[list[str]] = [[]]
    for word in reader:
        if word in OPERATORS:
            commands.append([])
        else:
            commands[-1].append(word)
    return [tuple(words) for words in commands if words]
