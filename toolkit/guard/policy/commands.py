"""ShellCommand rules: which commands a rule covers or matches, by their words. ``shell_text.py`` reads the text of both.

Promise: an allow rule covers exactly the words that it spells. A ``*`` is any text inside its word, a ``*`` by itself one
word, and a last ``*`` any number of words. Every command of a text must be covered, those inside ``$(…)`` as well, with
its assignments and redirections. A deny or ask rule matches its words wherever they stand in a command: behind any other
program, inside quotes, after an option. It also matches every text that cannot be read, and every word that the shell
computes. All programs are treated alike; only text for a shell must itself be readable. Time is linear.

Limit: deny and ask rules see words, not what a program does. What a command can really do is decided by the process
sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from typing import Final, Literal

from toolkit.errors import PolicyError
from toolkit.guard.policy.preview import Preview
from toolkit.guard.policy.shell_text import (
    KEYWORDS,
    MAX_TEXT,
    ShellCommand,
    ShellGlob,
    UnreadableText,
    Word,
    read_shell,
)
from toolkit.guard.process.command import is_harmless

# -- rules -------------------------------------------------------------------------------------------------------------

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,=-]*", re.ASCII)


def read_rule(text: str, decision: Literal["allow", "ask", "deny"]) -> ShellCommand:
    """The command of a rule. Its globs are patterns; a quoted ``*`` is a star.

    >>> read_rule("git log *", "allow").words
    ('git', 'log', ShellGlob(source='*', parts=('', '')))
    """
    first = text.split(" ")[0]
    if first in KEYWORDS:
        raise PolicyError(
            f"a rule's command must begin with a program, and {first!r} is a word of the shell itself; name the program"
            " that it runs"
        )
    commands = read_shell(text)
    if commands is None or len(commands) != 1 or not commands[0].words:
        raise PolicyError(
            f"a rule's command must be one command such as 'git log' or 'git log *', not {text!r}; write its program"
            " out, and a rule for each command of a pipeline"
        )
    [command] = commands
    if None in (*command.words, *command.assigned, *(target for _, target in command.redirects)):
        raise PolicyError(f"a rule's command must not have variables or '~': {text!r}; write out what they stand for")
    if decision == "allow":
        return command
    if command.assigned or command.redirects:
        raise PolicyError(
            f"a rule that denies or asks names a program and its arguments only, not {text!r}; leave out assignments"
            " and redirections"
        )
    return ShellCommand(command.words[:-1] if _is_open(command) else command.words)


def write_rule(words: Iterable[str]) -> str:
    """The text of a rule for exactly these words.

    >>> write_rule(["git", "log", "--grep", "a *"])
    "git log --grep 'a *'"
    """
    return " ".join(map(_quote, words))


def exact_rule(preview: Preview) -> str | None:
    """The text of the allow rule that covers exactly the command of a call: ``Rule("allow", command=...)``.

    None for a call that runs several commands, or words that only the shell knows (globs, variables, ``$(…)``), and for one
    that no rule covers by its words alone, such as a relative program outside the workspace's top directory.

    >>> exact_rule(Preview(shell="make  test >build.log 2>&1")), exact_rule(Preview(argv=("ls", "a*")))
    ('make test > build.log', "ls 'a*'")
    >>> exact_rule(Preview(shell="ls *.py")) is None
    True
    """
    touched = TouchedCommands.from_preview(preview)
    if touched.commands is None or len(touched.commands) != 1:
        return None
    text = spell(touched.commands[0])
    try:
        is_exact = text is not None and touched.find_cover([read_rule(text, "allow")]) is not None
    except PolicyError:
        return None
    return text if is_exact else None


def spell(command: ShellCommand) -> str | None:
    """The text of the rule that covers only this command; None if a word of it is known only to the shell."""
    targets = [target for _, target in command.redirects]
    if not all(isinstance(word, str) for word in (*command.words, *command.assigned, *targets)):
        return None
    assigned = [str(word).partition("=") for word in command.assigned]
    redirects = [f"{operator} {_quote(str(target))}" for operator, target in command.redirects]
    return " ".join(
        [*(f"{name}={_quote(value)}" for name, _, value in assigned), *map(_quote, map(str, command.words)), *redirects]
    )


def _quote(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"


# -- allow -------------------------------------------------------------------------------------------------------------


def covers(rule: ShellCommand, command: ShellCommand) -> bool:
    """Whether an allow rule spells a command.

    >>> git_log, = read_shell("git log -1")
    >>> covers(read_rule("git log *", "allow"), git_log), covers(read_rule("git log", "allow"), git_log)
    (True, False)
    """
    own, words = rule.words, command.words
    if _is_open(rule):
        own, words = own[:-1], words[: len(own) - 1]
    return (
        _fit_all(own, words)
        and _fit_all(rule.assigned, command.assigned)
        and [operator for operator, _ in rule.redirects] == [operator for operator, _ in command.redirects]
        and _fit_all([target for _, target in rule.redirects], [target for _, target in command.redirects])
    )


def _is_open(rule: ShellCommand) -> bool:
    last = rule.words[-1]
    return isinstance(last, ShellGlob) and last.source == "*"


def _fit_all(own: Sequence[Word], words: Sequence[Word]) -> bool:
    return len(own) == len(words) and all(map(_fits, own, words))


def _fits(own: Word, word: Word) -> bool:
    """What the shell computes may be several words: only the same glob fits it."""
    if isinstance(own, ShellGlob):
        return own.fits(word) if isinstance(word, str) else own == word
    return word is not None and own == word


_UNREADABLE_TEXT: Final = (
    "allow rules cover only commands that can be read: words, && || ; |, redirections, globs, variables and $(…), without"
    " loops, functions, & and <<"
)
_ELSEWHERE: Final = "it covers this program only in the workspace's own directory: start it there, without cwd or cd"


# -- deny and ask ------------------------------------------------------------------------------------------------------

_MAX_ARGV: Final = 1 << 20  # the process guard refuses a longer command
_MAX_DEPTH: Final = 8
_MAX_COMPARED_WORDS: Final = 20_000  # a rule that is still undecided then is taken to match

_SHELLS: Final = frozenset(["sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "su"])
_EVALUATE: Final = frozenset([".", "eval", "source", "trap"])  # words of the shell itself
_PIECE: Final = re.compile(r"[A-Za-z0-9_./+-]+", re.ASCII)
_READS_INPUT: Final = re.compile(r"-|-[a-z]*s[a-z]*|(?:.*/)?(?:dev/.*(?:stdin|fd)|proc/.*fd).*", re.ASCII | re.DOTALL)
_NO_SCRIPT: Final = re.compile(r"[-+]|[^A-Za-z0-9]*$", re.ASCII)
_ESCAPE: Final = re.compile(r"\\[abefnrtv]")
_QUOTING: Final = re.compile(r"\\\n|[\\'\"]")
_BRACKETS: Final = re.compile(r"\[.*\]?", re.DOTALL)
_LETTER: Final = re.compile(r"[A-Za-z0-9]", re.ASCII)


class _Mentioned:
    """Everything that the words of a call mention: its commands, and the text inside their words."""

    def __init__(self, commands: Iterable[ShellCommand]) -> None:
        self._groups: set[tuple[Word, ...]] = set()
        """Words that follow each other."""
        self._inside: set[tuple[str, ...]] = set()
        """Words inside one word."""
        self._names: set[str] = set()
        self._options: set[str] = set()
        self._globs: set[str] = set()
        self._length = 0
        for command in commands:
            self._add_command(command, 0)

    def match(self, words: Sequence[Word]) -> bool:
        """Whether a rule with these words matches."""
        program = _name_of(str(words[0]))
        may_match = (
            program in self._names
            or (len(words) > 1 and f"{program}-{words[1]}" in self._names)
            or any(option.endswith(program) for option in self._options)
            or any(fnmatchcase(program, glob) for glob in self._globs)
        )
        return may_match and (
            any(_mentions(group, words, may_go_on=True) for group in self._groups)
            or any(_mentions(group, words, may_go_on=False) for group in self._inside)
        )

    def _add_command(self, command: ShellCommand, depth: int) -> None:
        self._add_group(command.words, depth)
        for word in (*command.assigned, *(target for _, target in command.redirects)):
            self._add_group((word,), depth)

    def _add_group(self, words: tuple[Word, ...], depth: int) -> None:
        self._groups.add(words)
        for word in set(words):
            if isinstance(word, str):
                self._add_word(word)
                if _name_of(word).rstrip("0123456789.-") in _SHELLS:
                    self._add_shell(words[words.index(word) + 1 :], depth)
            elif word is None:
                raise UnreadableText
            else:
                self._globs.add(_pattern_of(word))
        start = 1 if words[:1] in (("builtin",), ("command",)) else 0
        if words[start : start + 1] and words[start] in _EVALUATE:
            self._add_shell(words[start + 1 :], depth)

    def _add_word(self, word: str) -> None:
        self._add_name(word)
        if not _PIECE.fullmatch(word):
            self._length += len(word)
            if self._length > MAX_TEXT:
                raise UnreadableText
            inside = _split(word)
            self._inside |= inside
            for piece in set().union(*inside):
                self._add_name(piece)

    def _add_name(self, word: str) -> None:
        self._names.add(_name_of(word))
        if word.startswith("-"):
            self._options.add(word)

    def _add_shell(self, words: Sequence[Word], depth: int) -> None:
        """The words behind the name of a shell: it must not read its input, and its text must be readable."""
        if depth == _MAX_DEPTH or all(isinstance(word, str) and _NO_SCRIPT.match(word) for word in words):
            raise UnreadableText
        for word in set(words):
            if not isinstance(word, str) or _READS_INPUT.fullmatch(word):
                raise UnreadableText
            commands = () if _PLAIN.fullmatch(word) or not _LETTER.search(word) else read_shell(word)
            if commands is None:
                raise UnreadableText
            for command in commands:
                self._add_command(command, depth + 1)


def _split(word: str) -> set[tuple[str, ...]]:
    """The names inside a word: as it is, without escapes, and with quotes and backslashes removed."""
    return {tuple(_PIECE.findall(text)) for text in (word, _ESCAPE.sub(" ", word), _QUOTING.sub("", word))}


def _name_of(program: str) -> str:
    """The last name of a path: ``/bin/rm`` is ``rm``."""
    return program.rpartition("/")[2]


def _pattern_of(glob: ShellGlob) -> str:
    """The last name of a glob, with ``*`` for what is in brackets."""
    return _name_of(_BRACKETS.sub("*", "*".join(glob.parts)))


def _mentions(group: Sequence[Word], words: Sequence[Word], *, may_go_on: bool = True) -> bool:
    """Whether words that follow each other are what a rule names: its program by any path, and then its further words, with
    options and their values between them. An option among the rule's words may stand anywhere behind. With ``may_go_on``, a
    program that stands last behind another one gets words that are not here (``xargs git``).

    >>> rule = ["git", "push"]
    >>> _mentions(["/usr/bin/git", "-C", "x", "push"], rule), _mentions(["git", "stash", "push"], rule)
    (True, False)
    """
    program, last = _name_of(str(words[0])), 0
    # How many of the rule's words were found, and whether the next word may be the value of an option.
    states: set[tuple[int, bool]] = set()
    for place, word in enumerate(islice(group, _MAX_COMPARED_WORDS)):
        states = _step(states, word, words)
        if _names(word, program, place):
            states.add((1, False))
            last = place if isinstance(word, str) and _name_of(word) == program else last
        elif len(words) > 1 and isinstance(word, str) and _name_of(word) == f"{program}-{words[1]}":
            states.add((2, False))  # `git-push` is `git push`
        if any(found >= len(words) for found, _ in states):
            return True
    if len(group) > _MAX_COMPARED_WORDS:
        return True
    return may_go_on and last > 0 and all(isinstance(word, str) and word.startswith("-") for word in group[last + 1 :])


def _names(word: Word, program: str, place: int) -> bool:
    """Whether a word is the program, may become it, or holds its name."""
    if isinstance(word, ShellGlob):
        pattern = _pattern_of(word)
        return (place == 0 or _LETTER.search(pattern) is not None) and fnmatchcase(program, pattern)
    if word is None:
        return True
    if _name_of(word) == program or (word.startswith("-") and word[1:2] != "-" and word.endswith(program)):
        return True
    return program in word and any(_names(piece, program, place) for piece in _pieces(word))


def _pieces(word: str) -> set[str]:
    return set() if _PIECE.fullmatch(word) else {piece for pieces in _split(word) for piece in pieces}


def _step(states: set[tuple[int, bool]], word: Word, words: Sequence[Word]) -> set[tuple[int, bool]]:
    if not states:
        return states
    if not isinstance(word, str) or word == "{}":  # any words
        return {(len(words), False)}
    is_option = word.startswith("-")
    following: set[tuple[int, bool]] = set()
    for found, may_be_value in states:
        wanted = words[found]
        if _fits(wanted, word) or wanted in _pieces(word):
            following.add((found + 1, False))
        if (
            is_option
            or may_be_value
            or (wanted.parts[0] if isinstance(wanted, ShellGlob) else str(wanted)).startswith("-")
        ):
            following.add((found, is_option))
    return following


# -- what a call runs --------------------------------------------------------------------------------------------------


class TouchedCommands:
    """The commands of one call, where they start, and with which variables."""

    def __init__(self, commands: tuple[ShellCommand, ...] | None, *, in_workspace: bool) -> None:
        self.commands: Final = commands
        """What the call runs; None if that cannot be read."""
        self.in_workspace: Final = in_workspace
        """Whether all of them start in the workspace's own directory."""

    @staticmethod
    def from_preview(preview: Preview) -> TouchedCommands:
        """Variables that the call adds are assignments whose value is not known, unless they are harmless."""
        odd = tuple(
            ShellGlob(f"{name}=*", (f"{name}=", "")) for name in sorted(preview.variables) if not is_harmless(name)
        )
        own: tuple[ShellCommand, ...] = () if preview.argv is None else (ShellCommand(preview.argv),)
        read = () if preview.shell is None else read_shell(preview.shell)
        commands = None if read is None else (*own, *read)
        if commands is not None and odd:
            commands = tuple(ShellCommand(one.words, (*odd, *one.assigned), one.redirects) for one in commands)
        return TouchedCommands(
            commands,
            in_workspace=_is_workspace(preview.cwd) and not any(one.words[:1] == ("cd",) for one in commands or ()),
        )

    @cached_property
    def _mentioned(self) -> _Mentioned | None:
        """None if something cannot be read."""
        if self.commands is None:
            return None
        for command in self.commands:
            lengths = [len(word) for word in command.words if isinstance(word, str)]
            if sum(lengths) + len(lengths) > _MAX_ARGV or max(lengths, default=0) > MAX_TEXT:
                return None
        try:
            return _Mentioned(self.commands)
        except UnreadableText:
            return None

    @property
    def is_readable(self) -> bool:
        """Whether everything that the call runs can be read, that which a shell in it runs as well."""
        return self._mentioned is not None

    def match(self, rule: ShellCommand) -> bool:
        """For deny and ask: whether a rule matches anything that is mentioned. What cannot be read is a match."""
        return self._mentioned is None or self._mentioned.match(rule.words)

    def why_matched(self, rule: ShellCommand) -> str:
        """Why a deny or ask rule matches a command that does not begin with its program; else empty."""
        if self._mentioned is None:
            return (
                "it matches every command that cannot be read, like this one: write out variables and $(…), and leave out"
                " loops and shells inside the command"
            )
        program = str(rule.words[0])
        if any(_names(word, _name_of(program), 0) for command in self.commands or () for word in command.words[:1]):
            return ""
        return (
            f"it matches {program!r} wherever it stands in a command, even as an argument or in quotes; if it is only"
            " data, such as a message, pass it in a file"
        )

    def find_cover(self, rules: Sequence[ShellCommand | None]) -> int | None:
        """For allow: the place of one of these rules, which together cover all commands; None if they do not."""
        found = [self._find_rule(command, rules) for command in self._judged]
        return None if None in found else next(iter(found), None)

    def why_uncovered(self, rules: Sequence[ShellCommand | None]) -> tuple[int | None, str, str | None]:
        """The place of a rule that comes close to a command that no rule covers, what that rule does not cover, and the text
        of the rule that would cover just this command."""
        if self.commands is None:
            return None, _UNREADABLE_TEXT if any(rules) else "", None
        places = [self._find_rule(command, rules) for command in self._judged]
        if None not in places:
            return None, "", None
        command = self._judged[places.index(None)]
        near = [(_count_shared(rule, command), -place) for place, rule in enumerate(rules) if rule is not None]
        shared, place = max(near, default=(0, 0))
        rule = rules[-place] if shared else None
        if rule is None:
            part = next((place for place in places if place is not None), None)
            return (None, "", None) if part is None else (part, "it covers only a part of what is run", spell(command))
        if covers(rule, command):
            return -place, _ELSEWHERE, None
        return -place, _why_uncovered(rule, command), spell(command)

    @property
    def _judged(self) -> list[ShellCommand]:
        """The commands that need a rule. ``cd src`` before others does what the ``cwd`` of the tool does."""
        commands = self.commands or ()
        return [one for one in commands if len(commands) == 1 or not _only_changes_directory(one)]

    def _find_rule(self, command: ShellCommand, rules: Sequence[ShellCommand | None]) -> int | None:
        program = str(command.words[0]) if command.words else ""
        if not self.in_workspace and "/" in program and not program.startswith("/"):
            return None  # the directory chooses what this name runs
        return next((place for place, rule in enumerate(rules) if rule is not None and covers(rule, command)), None)


def _count_shared(rule: ShellCommand, command: ShellCommand) -> int:
    """How many words agree; 0 if the program does not."""
    pairs = list(zip(rule.words, command.words, strict=False))
    return sum(_fits(*pair) for pair in pairs) if pairs and _fits(*pairs[0]) else 0


def _why_uncovered(rule: ShellCommand, command: ShellCommand) -> str:
    added = [word for word in command.assigned if isinstance(word, ShellGlob) and word not in rule.assigned]
    if added:
        return f"it does not cover a call that sets the environment variable {added[0].parts[0][:-1][:40]!r}"
    if not covers(ShellCommand(rule.words), ShellCommand(command.words)):
        is_known = all(isinstance(word, str) for word in command.words)
        return f"it covers only the words that it spells{'' if is_known else ', not a glob, a variable or $(…)'}"
    return f"it does not spell the {'assignment' if rule.assigned != command.assigned else 'redirection'}"


def _only_changes_directory(command: ShellCommand) -> bool:
    match command:
        case ShellCommand(("cd", str(path)), (), ()):
            return not path.startswith("-")
    return False


def _is_workspace(cwd: str) -> bool:
    """Whether a directory is certainly the workspace. ``a/..`` is not: ``a`` may be a link."""
    return not cwd.startswith("/") and {"", "."}.issuperset(cwd.split("/"))
