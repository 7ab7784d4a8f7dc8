"""Shell text, as the policy reads it."""

from __future__ import annotations

import contextlib
import re
import shlex
from typing import Final

from toolkit.errors import PolicyError
from toolkit.guard import Preview, Rule, SecurityPolicy
from toolkit.guard.policy.commands import exact_rule
from toolkit.guard.policy.rule import Decision
from toolkit.guard.policy.shell_text import ShellCommand, ShellGlob, read_shell

DENYING: Final[tuple[Decision, ...]] = ("deny", "ask")
OPERATORS: Final = {"&&", "||", ";", "|"}
_MORE_THAN_WORDS: Final = re.compile(r"[$`#<>\n\\~]")


def check_shell_text(data: bytes) -> None:
    """What is read is what a shell splits in the same way; rules on it deny, ask and do not allow too much."""
    text = data.decode(errors="replace")
    commands = read_shell(text)
    if commands is not None:
        if not _MORE_THAN_WORDS.search(text):
            written = [_as_written(command) for command in commands]
            # That reader does not tell a quoted operator from a real one.
            if not any(word in OPERATORS for words in written for word in words):
                assert written == _split(text), "a shell reads other commands"
        for command in commands:
            for decision in DENYING:
                if command.words and isinstance(command.words[0], str):
                    denying: Rule[str] = Rule(decision, command=command.words[0])
                    assert _judge(text, denying, "allow") == decision, "a rule was passed"
    allowed = _judge(text, Rule("allow", command="git log *"), "deny") == "allow"
    is_spelled = commands is not None and all(one.words[:2] == ("git", "log") for one in commands if _is_no_cd(one))
    assert not allowed or is_spelled, "allowed too much"
    exact = exact_rule(Preview(shell=text))
    assert exact is None or _judge(text, Rule("allow", command=exact), "deny") == "allow", "the exact rule is another"
    with contextlib.suppress(PolicyError):
        Rule("allow", command=text)


def _judge(text: str, rule: Rule[str], default: Decision) -> Decision:
    return SecurityPolicy(default, rules=[rule])._judge("bash", ["execute"], Preview(shell=text)).decision


def _is_no_cd(command: ShellCommand) -> bool:
    return command.words[:1] != ("cd",)


def _as_written(command: ShellCommand) -> tuple[str, ...]:
    words = (*command.assigned, *command.words)
    return tuple("*".join(word.parts) if isinstance(word, ShellGlob) else str(word) for word in words)


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
