"""The approver that asks on the terminal: ``ToolkitContext(..., approver=ask_in_terminal)``.

Promise: nothing that a call brings along acts on the terminal or passes for the question, and what was typed before the
question was shown is no answer to it. Only the letters that are offered approve; without a terminal nothing is approved.
"""

from __future__ import annotations

import sys
import termios
from typing import Final, TextIO

from toolkit.runtime.approvals import Answer, ApprovalRequest, Approve, Deny, approval_text
from toolkit.visible import escape_hidden

_NO_TERMINAL: Final = "it needs the approval of a person, and this program does not run on a terminal"
_NOBODY: Final = "nobody answered: the input of the terminal has ended"
_ANSWERS: Final = {"y": Approve(), "s": Approve(remember="session"), "a": Approve(remember="always")}


def ask_in_terminal(request: ApprovalRequest) -> Answer:
    """Show a call on the terminal, and let a person answer: yes, yes for this session, yes always, or no.

    ``n`` takes words for the model: ``n use the other file``. Where an approval cannot be remembered, ``s`` and ``a`` are not
    offered. Without a terminal on standard input and standard error, every call is denied.

    >>> from toolkit import SecurityPolicy, ToolkitContext, ask_in_terminal, create_agent_toolkit
    >>> policy = SecurityPolicy(default="deny", tools={"bash": "ask"})
    >>> with create_agent_toolkit(ToolkitContext(".", policy, approver=ask_in_terminal)) as tk:
    ...     "bash" in [tool.name for tool in tk.get_allowed_tools()]
    True
    """
    answers, screen = sys.stdin, sys.__stderr__
    if answers is None or screen is None or not (answers.isatty() and screen.isatty()):
        return Deny(_NO_TERMINAL)
    termios.tcflush(answers.fileno(), termios.TCIFLUSH)
    _write(screen, f"\n{approval_text(request, indent='  ')}\n{_explain_remembering(request)}\n")
    offered = "ysan" if request.remembers else "yn"
    while True:
        _write(screen, f"{_question(offered)} ")
        line = answers.readline()
        if not line.endswith("\n"):
            _write(screen, "\n")
            return Deny(_NOBODY)
        letter, _, words = line.strip().partition(" ")
        letter = {"yes": "y", "no": "n"}.get(letter.lower(), letter.lower())
        if letter == "n":
            return Deny(words.strip() or "the user said no")
        if letter and letter in offered and not words:
            return _ANSWERS[letter]
        _write(screen, "Answer with one of the letters; after n you may say why.\n")


def _explain_remembering(request: ApprovalRequest) -> str:
    if not request.remembers:
        return f"This cannot be remembered: {escape_hidden(request.not_remembered)}."
    rules = f" ({', '.join(map(repr, request.rules))})" if request.rules else ""
    return f"To remember: {escape_hidden(request.remembers + rules)}"


def _question(offered: str) -> str:
    words = {"y": "y once", "s": "s for this session", "a": "a always in this workspace", "n": "n no"}
    return f"Approve? {', '.join(words[letter] for letter in offered)}:"


def _write(screen: TextIO, text: str) -> None:
    screen.write(text)
    screen.flush()
