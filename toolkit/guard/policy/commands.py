"""Command rules: how a command is compared with a rule word by word.

Deny and ask rules match too much rather than too little (``mentions``, on everything that ``look_through`` finds). Allow
rules compare exactly (``begins_with``), and cover only arguments that are known to be harmless (``allowed_arguments``).

Limit: what a command can really do is decided by the process sandbox.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from toolkit.errors import PolicyError
from toolkit.guard.policy.command_options import (
    ANYWHERE,
    EVALUATES_BRACKETS,
    FIND_VALUED,
    FIND_WORDS,
    FORMATS_SIGNATURES,
    GIT_GLOBAL,
    GIT_GLOBAL_VALUED,
    GIT_SUBCOMMANDS,
    GO_OPTIONS,
    KNOWN_REMOTES,
    LOSING,
    OPAQUE_BUILTINS,
    OTHER_RUNNERS,
    PERMUTING,
    PROGRAM_OPTIONS,
    PROJECT_RUNNERS,
    REMOTE_SUBCOMMANDS,
    RUNNERS,
    RUNS_PROGRAM,
    RUST_TEST_OPTIONS,
    SHELL_BUILTINS,
    SHELLS,
    TEST_OPERATORS,
    UNREADABLE_RUNNERS,
    WRAPPERS,
    may_be_input,
    may_run,
    names_program,
    unwrap,
)
from toolkit.guard.policy.preview import Preview
from toolkit.guard.process.command import is_harmless, runs_other_code

# -- shell text --------------------------------------------------------------------------------------------------------

# Reads shell text for rules: which commands it would run, as far as plain words show that.
#
# Promise: ``plain_commands`` returns commands only for text that a shell reads in exactly the same way: plain or quoted
# words, joined by ``&&``, ``||``, ``;`` and ``|``. For everything else (substitutions, redirections, variables, globs,
# escapes, comments, keywords, assignments, line breaks, look-alike spaces) it returns None: no allow rule covers such
# text.
#
# ``run_commands`` is for deny and ask, which need to know only what is run. It also reads line breaks, redirections to
# and from plain names, and ``*`` and ``?`` in arguments, which stand for unknown words. What it cannot read matches
# every such rule. Text that is longer than a command may be is not parsed. Time is linear.
#
# Limit: what the commands do with their arguments is not judged. Rules on text are a convenience; the process sandbox is the
# boundary.

MAX_TEXT: Final = 128 * 1024 - 1  # the process guard refuses a longer argument
UNKNOWN_WORDS: Final = "\0"
"""Stands for any words. No command that can be run contains it."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+,=-]+", re.ASCII)
# Characters that are not special to a shell, or a quoted text in which nothing is special. `{}` and `\;` are in every
# `find -exec`.
_PART: Final = re.compile(
    r"""((?:[A-Za-z0-9_./:@%+,=-]|\{\})+)|'([^'\x00-\x1f\x7f]*)'|"([^"$`\\!\x00-\x1f\x7f]*)\"""", re.ASCII
)
# One or more such parts without a space.
_WORD: Final = re.compile(rf"(?:{_PART.pattern})+|\\;", re.ASCII)
_OPERATOR: Final = re.compile(r"&&|\|\||;|\|(?!&)")
# The same with globs, for what only deny and ask rules read.
_GLOB_PART: Final = re.compile(_PART.pattern.replace(r"|\{\}", r"|\{\}|[*?]", 1), re.ASCII)
_GLOB_WORD: Final = re.compile(rf"(?:{_GLOB_PART.pattern})+|\\;", re.ASCII)
_GLOB: Final = re.compile(r"[*?]")
_SEPARATOR: Final = re.compile(rf"{_OPERATOR.pattern}|\n")
# Not `&>`: some shells read it as `&` and `>`.
_REDIRECTION: Final = re.compile(
    rf"[0-9]?(?:>>|>|<)(?:&[0-9]| *(?>(?:{_PART.pattern})+))(?= |$|\n|{_OPERATOR.pattern})", re.ASCII
)
# zsh puts the path of a program for `=program`.
_ZSH_PROGRAM: Final = re.compile(r"=[^=]")
SHELL_KEYWORDS: Final = frozenset(
    {
        "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "foreach", "function", "if", "in", "repeat",
        "select", "then", "time", "until", "while",
    }
)  # fmt: skip


def plain_commands(text: str) -> list[tuple[str, ...]] | None:
    """The commands of a text, each as a tuple of words; None if the text is not plain.

    >>> plain_commands("git log -1 && ls src | wc -l")
    [('git', 'log', '-1'), ('ls', 'src'), ('wc', '-l')]
    >>> plain_commands("git log $(id)") is None
    True
    """
    return _read(text, loosely=False)


def run_commands(text: str) -> list[tuple[str, ...]] | None:
    """The commands that a text would run, for deny and ask; None if they cannot be read.

    >>> run_commands("pytest -q 2>&1 | tail -5")
    [('pytest', '-q'), ('tail', '-5')]
    """
    return _read(text, loosely=True)


def _read(text: str, *, loosely: bool) -> list[tuple[str, ...]] | None:
    if len(text) > MAX_TEXT:
        return None
    separators = _SEPARATOR if loosely else _OPERATOR
    commands: list[tuple[str, ...]] = []
    words: list[str] = []
    place = 0
    ended_by = ""
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        separator = separators.match(text, place)
        if separator is not None:
            place = separator.end()
            if words:
                commands.append(tuple(words))
                words, ended_by = [], separator[0]
            elif separator[0] != "\n":
                return None
            continue
        redirection = _REDIRECTION.match(text, place) if loosely else None
        if redirection is not None:
            place = redirection.end()
            continue
        word = _read_word(text, place, first=not words, loosely=loosely)
        if word is None:
            return None
        value, place = word
        words.append(value)
    if words:
        commands.append(tuple(words))
    elif not commands or ended_by not in (";", "\n"):
        return None
    return commands


def _read_word(text: str, place: int, *, first: bool, loosely: bool) -> tuple[str, int] | None:
    """The word at a position and its end. It must end at a space or a separator; None if it does not."""
    found = (_GLOB_WORD if loosely else _WORD).match(text, place)
    if found is None:
        return None
    end = found.end()
    separators = _SEPARATOR if loosely else _OPERATOR
    if end < len(text) and text[end] != " " and separators.match(text, end) is None:
        return None
    text_of_word = found[0]
    if first:
        # A plain command does not start with a quoted program, an assignment or a keyword.
        is_program = _PLAIN.fullmatch(text_of_word) and "=" not in text_of_word and text_of_word not in SHELL_KEYWORDS
        return (text_of_word, end) if is_program else None
    if text_of_word == r"\;":
        return ";", end
    if loosely and _ZSH_PROGRAM.match(text_of_word):
        return None
    if not loosely:
        return "".join("".join(parts) for parts in _PART.findall(text_of_word)), end
    found_parts = _GLOB_PART.findall(text_of_word)
    return "".join(_GLOB.sub(UNKNOWN_WORDS, bare) + single + double for bare, single, double in found_parts), end


# -- git ---------------------------------------------------------------------------------------------------------------

# What a git command runs besides git: aliases, ``bisect run``, ``rebase --exec``, and options that name a program.
#
# Promise: a program that the arguments of git name is found, or the command counts as unreadable, abbreviated options
# included.
#
# Limit: hooks, and what the configuration of a repository names, are not seen.

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


# -- commands that run commands ----------------------------------------------------------------------------------------

# Which commands a command runs, for deny and ask rules: looks through wrappers, as far as they can be read.
#
# Promise: a command behind a wrapper (``sh -c``, ``env``, ``xargs``, ``find -exec``, ``sudo``,
# ``git -c alias.x=!…`` and others, in each other as well) is found, or the whole counts as unreadable, which every deny
# and ask rule on commands matches. Unreadable are: shell text that ``run_commands`` cannot read or that is for a shell
# of another grammar, options of a wrapper that are not known, options that run something else, shells that read their
# input, variables that make programs run other code, nesting deeper than 8 wrappers, and commands that are longer than
# the process guard accepts. Time is linear in the length of the command.
#
# Limit: what a program does by itself is not seen. A script, ``make``, ``awk``, ``python -c``, a link to a denied
# program under another name: the process sandbox decides what they can do.

_MAX_ARGV: Final = 1 << 20  # the process guard refuses a longer command
_MAX_DEPTH: Final = 8
_MAX_WRAPPED_WORDS: Final = 20_000  # of all wrappers in a call together

_LOADERS: Final = ("ld-linux", "ld-musl", "ld.so")
_GIT_PROGRAM: Final = "git-"
_HARMLESS_TMUX: Final = frozenset({"-V", "has-session", "kill-server", "kill-session", "list-sessions", "ls"})
PRINTF_SETS: Final = re.compile(r"%[-+ #'0-9.*$]*[hlLjtz]*n")
"""``printf %n PATH`` sets a variable."""
_FIND_EXEC: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_SHELL_LETTERS: Final = frozenset("BCEHOPTabcefhiklmnoprstuvx")
_OTHER_SHELL_LETTERS: Final = frozenset("ciln")  # of shells whose other letters may have values
_OTHER_SHELLS: Final = frozenset({"csh", "elvish", "fish", "nu", "pwsh", "tcsh", "xonsh"})
_SHELL_LONG: Final = frozenset(
    {"--login", "--noediting", "--noprofile", "--norc", "--posix", "--restricted", "--verbose"}
)


class _Unreadable(Exception):
    """Something of a command cannot be read."""


@dataclass(frozen=True, slots=True)
class RunCommands:
    """All commands that a call would run, by the names of their programs."""

    by_name: Mapping[str, Sequence[tuple[str, ...]]]
    behind_runners: Sequence[tuple[str, ...]]
    """Commands of programs that run others: any of their words may be a program."""
    is_unreadable: bool


NOTHING: Final = RunCommands({}, (), False)
UNREADABLE: Final = RunCommands({}, (), True)


def find_run_commands(commands: Iterable[Sequence[str]]) -> RunCommands:
    """What the commands of a call run, themselves included.

    >>> sorted(find_run_commands([["sudo", "sh", "-c", "rm x"]]).by_name)
    ['rm', 'sh', 'sudo']
    >>> find_run_commands([["bash", "-c", "$(id)"]]).is_unreadable
    True
    """
    search = _Search()
    try:
        for argv in commands:
            search.read_argv(tuple(argv), 0)
    except _Unreadable:
        return UNREADABLE
    return RunCommands(search.by_name, search.behind_runners, False)


def name_of(program: str) -> str:
    """The last name of a path: ``/bin/rm`` is ``rm``."""
    return program.rpartition("/")[2]


class _Search:
    """Collects the commands of one call."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        self.behind_runners: list[tuple[str, ...]] = []
        self._wrapped_words = 0

    def read_text(self, text: str, depth: int) -> None:
        commands = run_commands(text)
        if commands is None:
            raise _Unreadable
        for argv in commands:
            self.read_argv(argv, depth)

    def read_argv(self, argv: tuple[str, ...], depth: int) -> None:
        if not argv:
            return
        name = name_of(argv[0])
        # An option where a program should be was not understood; the rest stands for names that are not known here.
        if not name or name.startswith("-") or any(sign in name for sign in "\0{}"):
            raise _Unreadable
        if depth == 0 and (sum(map(len, argv)) + len(argv) > _MAX_ARGV or max(map(len, argv)) > MAX_TEXT):
            raise _Unreadable
        self.by_name[name].append(argv)
        reader = _find_reader(name)
        if reader is None:
            return
        if depth > 0 or reader is not _read_running_options:  # `sort` of many files is no wrapper
            self._wrapped_words += len(argv)
        if depth == _MAX_DEPTH or self._wrapped_words > _MAX_WRAPPED_WORDS:
            raise _Unreadable
        if name in RUNNERS or reader is _read_loosely:
            self.behind_runners.append(argv)
        reader(self, (name, *argv[1:]), depth + 1)


_Reader = Callable[[_Search, tuple[str, ...], int], None]


def _find_reader(name: str) -> _Reader | None:
    if name.startswith(_LOADERS):
        return _read_loosely
    if name.startswith(_GIT_PROGRAM):
        return _read_git_program
    return _READERS.get(name) or (_read_running_options if may_run(name) else None)


def _read_wrapper(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    wrapper = WRAPPERS[argv[0]]
    behind = unwrap(wrapper, argv, permutes=argv[0] in PERMUTING)
    if behind is None or any(map(runs_other_code, behind.assigned)):
        raise _Unreadable
    words, texts = behind.words, behind.texts
    if _has_unknown_words(argv[: len(argv) - len(words)]):  # they may be any number, and the command among them
        raise _Unreadable
    if argv[0] == "env" and texts:  # env -S: the text is split into words of its own command line
        _read_split_text(search, texts, words, depth)
        return
    if argv[0] == "flock" and words[:1] in (("-c",), ("--command",)):
        words, texts = (), words[1:2]
    if not words and not texts and wrapper.starts_shell:
        raise _Unreadable
    for text in texts:
        search.read_text(text, depth)
    if wrapper.joins and words:
        search.read_text(" ".join(words), depth)
        if " " in words[0]:  # shell text as one word, not a program
            return
    search.read_argv(_with_unknown_words(argv, words) if wrapper.takes_more_words else words, depth)


def _read_split_text(search: _Search, texts: Sequence[str], words: tuple[str, ...], depth: int) -> None:
    for text in texts:
        commands = plain_commands(text)
        if commands is None or len(commands) != 1:
            raise _Unreadable
        search.read_argv(("env", *commands[0], *words), depth)


def _with_unknown_words(argv: Sequence[str], words: tuple[str, ...]) -> tuple[str, ...]:
    """The command of ``xargs`` with what it reads from its input: behind it, and wherever the text of ``-I`` is."""
    if not words:
        return ()
    options = argv[1 : len(argv) - len(words)]
    marks = set()
    for option, following in zip(options, [*options[1:], ""], strict=False):
        mark = None
        if option.startswith("-I"):
            mark = option[2:] or following
        elif option.startswith("-i") or option.partition("=")[0] == "--replace":
            mark = (option.partition("=")[2] if option.startswith("--") else option[2:]) or "{}"
        elif option.startswith("-") and not option.startswith("--") and ("I" in option or "i" in option):
            raise _Unreadable
        if mark is not None:
            marks.add(mark)
    if len(marks) > 1:
        raise _Unreadable
    for mark in marks:
        words = tuple(word.replace(mark, UNKNOWN_WORDS) for word in words)
    return (*words, UNKNOWN_WORDS)


def _read_shell(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    place, has_text, reads_input = 1, False, False
    while place < len(argv):
        word = argv[place]
        if word in ("-", "--"):
            place += 1
            break
        if word[:1] not in ("-", "+"):
            break
        letters = word[1:]
        if word.startswith("--"):
            letters = ""
            if word not in _SHELL_LONG:
                raise _Unreadable
        elif not (_OTHER_SHELL_LETTERS if argv[0] in _OTHER_SHELLS else _SHELL_LETTERS).issuperset(letters):
            raise _Unreadable
        has_text |= "c" in letters
        reads_input |= "s" in letters
        place += 1 + letters.count("o") + letters.count("O")
    if has_text and argv[0] in _OTHER_SHELLS:  # they have a grammar of their own
        raise _Unreadable
    if has_text and place < len(argv):
        search.read_text(argv[place], depth)
    elif has_text or reads_input:
        raise _Unreadable
    else:
        _read_script(search, argv[place:], depth)


def _read_source(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    _read_script(search, argv[1:], depth)


def _read_script(search: _Search, words: tuple[str, ...], depth: int) -> None:
    """A file that a shell reads. What is in it is not seen, as for any program; but it must be a file."""
    if not words or words[0].startswith("-") or may_be_input(words[0]):
        raise _Unreadable
    search.read_argv(words, depth)


def _read_rest(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    search.read_argv(argv[1:], depth)


def _read_find(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    if _has_unknown_words(argv):
        raise _Unreadable
    starts = [place for place, word in enumerate(argv) if word in _FIND_EXEC]
    for start, end in zip(starts, [*starts[1:], len(argv)], strict=False):
        words = tuple(UNKNOWN_WORDS if "{}" in word else word for word in argv[start + 1 : end])
        search.read_argv(words[: words.index(";")] if ";" in words else words, depth)


def _read_fd(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    if _has_unknown_words(argv):
        raise _Unreadable
    for place, word in enumerate(argv):
        found = re.fullmatch(r"--exec(?:-batch)?(?:=(.*))?|-[A-Za-z0-9]*?[xX](.*)", word, re.DOTALL)
        if found is None:
            continue
        first = found[1] or found[2]
        words = (*([first] if first else []), *argv[place + 1 :])
        command = (*(UNKNOWN_WORDS if "{" in part else part for part in words), UNKNOWN_WORDS)
        search.read_argv(command, depth)
        return


def _read_git(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    found = find_git_runs(argv)
    if found is None:
        raise _Unreadable
    for command in found.commands:
        search.read_argv(command, depth)
    for text in found.texts:
        search.read_text(text, depth)


def _read_git_program(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    """``/usr/lib/git-core/git-push``: the same as ``git push``."""
    search.read_argv(("git", argv[0].removeprefix(_GIT_PROGRAM), *argv[1:]), depth)


def _read_running_options(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    if names_program(argv):
        raise _Unreadable


def _read_tmux(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    """What it types into a terminal is not looked into."""
    if argv[1:2] and argv[1] not in _HARMLESS_TMUX:
        raise _Unreadable


def _read_jobs(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    """``jobs -x`` runs a command."""
    if any("x" in word or UNKNOWN_WORDS in word for word in argv[1:] if not word.startswith("%")):
        raise _Unreadable


def _read_loosely(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    """A program that runs others, with options that are not known: whatever can be a command is taken for one."""
    if len(argv) == 1:
        raise _Unreadable
    _read_wrappers_among(search, argv[1:], depth)
    for word in argv[1:]:
        if _is_wrapper(word):
            continue
        if word.startswith("-"):
            value = word.partition("=")[2] if word.startswith("--") else word[2:]
            if value and not value.isdecimal():
                search.read_text(value, depth)
        elif not word.replace("=", "").isalnum():
            search.read_text(word, depth)


def _read_project_runner(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    """``uv run touch x``: options before the program may have values, so any word behind ``run`` may be the program."""
    # What pnpm does not know, it runs.
    unknown = 0 if argv[0] == "pnpm" else len(argv)
    start = next((place for place, word in enumerate(argv) if word in RUNS_PROGRAM), unknown)
    words = argv[start + 1 :]
    if _has_unknown_words([next((word for word in words if not word.startswith("-")), "")]):
        raise _Unreadable
    search.behind_runners.append(words)
    if argv[0] in ("npm", "npx"):
        _read_call_options(search, argv, depth)
    if argv[0] == "pnpm" and not {"-c", "--shell-mode"}.isdisjoint(argv):
        raise _Unreadable
    _read_wrappers_among(search, words, depth)


def _read_wrappers_among(search: _Search, words: tuple[str, ...], depth: int) -> None:
    """Any word may be the program. All are read, not only the first: that may be the value of an option."""
    for place, word in enumerate(words):
        if _is_wrapper(word):
            search.read_argv(words[place:], depth)


def _is_wrapper(word: str) -> bool:
    """Whether a word may be a program that runs others. ``.`` and other builtins of a shell are no programs."""
    return _find_reader(name_of(word)) is not None and word not in SHELL_BUILTINS


def _read_call_options(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    """``npx -c 'touch x'``: shell text."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word in ("-c", "--call"):
            search.read_text(following, depth)
        elif word.startswith("--call="):
            search.read_text(word.removeprefix("--call="), depth)


def _read_trap(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if len(words) > 1 and words[0] not in ("", "-", "-l", "-p"):
        search.read_text(words[0], depth)


def _read_evaluating(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    names = (word.partition("=")[0] for word in argv[1:]) if argv[0] in ("export", "readonly") else ()
    if _has_unknown_words(argv) or any("[" in word for word in argv[1:]) or any(map(runs_other_code, names)):
        raise _Unreadable


def _read_printf(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    if any(word.startswith(("-v", UNKNOWN_WORDS)) for word in argv[1:2]) or any(map(PRINTF_SETS.search, argv)):
        raise _Unreadable


def _refuse_arguments(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    if len(argv) > 1:
        raise _Unreadable


def _refuse(search: _Search, argv: tuple[str, ...], depth: int) -> None:
    raise _Unreadable


def _readers(names: Iterable[str], reader: _Reader) -> dict[str, _Reader]:
    return dict.fromkeys(names, reader)


_READERS: Final[dict[str, _Reader]] = {
    **_readers(WRAPPERS, _read_wrapper),
    **_readers(SHELLS, _read_shell),
    **_readers(OTHER_RUNNERS, _read_loosely),
    **_readers(UNREADABLE_RUNNERS, _refuse),
    **_readers(PROJECT_RUNNERS, _read_project_runner),
    **_readers(OPAQUE_BUILTINS, _refuse_arguments),
    **_readers(EVALUATES_BRACKETS, _read_evaluating),
    **_readers((".", "source"), _read_source),
    **_readers(("busybox", "toybox"), _read_rest),
    **_readers(("fd", "fdfind"), _read_fd),
    "find": _read_find,
    "git": _read_git,
    "jobs": _read_jobs,
    "printf": _read_printf,
    "tmux": _read_tmux,
    "trap": _read_trap,
}


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


# -- allowed arguments -------------------------------------------------------------------------------------------------

# What an allow rule covers behind its own words: only arguments that are known to be harmless, by exact spelling.
#
# Promise: for a program with a table of options, and for git, a command is covered only if each option behind the
# rule's words is in the table. Programs that run others, and shell builtins that change what later commands mean, are
# never covered. An interpreter is covered only with a script that is a file. In another directory than the workspace
# itself, only programs are covered that run nothing they find there.
#
# Limit: for a program in no table the author of the rule answers, as for what a script, a Makefile or a test does.

# Shell builtins that change what later commands mean, or evaluate their arguments.
_SHELL_STATE: Final = frozenset(
    {
        "alias", "bind", "compgen", "complete", "compopt", "coproc", "declare", "enable", "export", "fc", "getopts", "hash",
        "let", "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "set", "shopt", "trap", "typeset",
        "ulimit", "umask", "unalias", "unset", "wait",
    }
)  # fmt: skip
_OTHER_NAMES: Final = {
    "[": "test", "bsdtar": "tar", "fdfind": "fd", "gawk": "awk", "gmake": "make", "gsed": "sed", "gtar": "tar",
    "ipython": "python", "mawk": "awk", "nawk": "awk", "nodejs": "node", "py.test": "pytest", "pypy": "python",
}  # fmt: skip
_VERSION: Final = re.compile(r"(?<=[a-z])[0-9][0-9.]*$")  # python3.12
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_.,:/@=+-]+", re.ASCII)
_WEB_ADDRESS: Final = re.compile(r"https?://|[A-Za-z0-9.-]+:[0-9]+(/|$)", re.ASCII)
# Letters of harmless options before the script, and options that take the place of a script.
_INTERPRETERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "elixir": ("", ("-v", "--version")),
    "guile": ("", ("-v", "--version")),
    "julia": ("", ("-v", "--version")),
    "lua": ("", ("-v",)),
    "luajit": ("", ("-v",)),
    "node": ("", ("-v", "--version")),
    "perl": ("tTwW", ("-v", "--version")),
    "php": ("", ("-v", "--version")),
    "python": ("BEIOPSbqsuv", ("-V", "-VV", "--version")),
    "racket": ("", ("-v", "--version")),
    "Rscript": ("", ("--version",)),
    "tclsh": ("", ()),
    "ruby": ("w", ("-v", "--version")),
}
# Words of project tools behind which any program may stand.
_RUN_WORDS: Final = RUNS_PROGRAM | {"create", "dlx", "eval", "init", "tool", "-e", "--eval", "-p", "--print"}
_SCRIPT_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn"})
_PNPM_WORDS: Final = frozenset(
    {"add", "audit", "i", "install", "list", "ls", "outdated", "remove", "run", "start", "t", "test", "update", "why"}
)
_PROGRAM_TEXT: Final = frozenset({"-", "-c", "-e", "-E", "-p", "-r", "--eval", "--print"})


# The only sed scripts that certainly do nothing but print: `p`, `d`, `q` and `=` with addresses, and substitutions without
# the flags e and w.
def _sed_pattern(mark: str) -> str:
    """A pattern up to ``mark``, which must not be inside brackets: whether it ends the pattern there depends on the sed."""
    return rf"(?:[^{mark}\[\\\n]|\\[^\n]|\[\^?(?:\[:[a-z]+:\]|[^{mark}\[\]\\\n])+\])*{mark}"


_ADDRESS: Final = rf"(?:\+?[0-9]+|\$|/{_sed_pattern('/')}I?)"
_SUBSTITUTION: Final = "|".join(
    rf"s{mark}{_sed_pattern(mark)}(?:[^{mark}\\\n]|\\[^\n])*{mark}[gpiI0-9]*" for mark in ("/", r"\|", "#", ",")
)
_SED_COMMAND: Final = rf"(?:{_ADDRESS}(?:,{_ADDRESS})?)?!?(?:[pdq=]|{_SUBSTITUTION})"
_HARMLESS_SED: Final = re.compile(rf"{_SED_COMMAND}(?: *; *{_SED_COMMAND})*")


def find_uncovered(argv: Sequence[str], own: int, *, in_workspace: bool) -> str | None:
    """Why an allow rule does not cover a command that begins with its words, of which there are ``own``; None if it does.

    >>> find_uncovered(["git", "log", "--oneline"], 2, in_workspace=True) is None
    True
    >>> find_uncovered(["git", "log", "--output=x"], 2, in_workspace=True)
    "it does not cover '--output'"
    """
    program = _common_name(argv[0])
    if program in RUNNERS or program in _SHELL_STATE:
        return f"no rule can allow '{program}'"
    is_relative = "/" in argv[0] and not argv[0].startswith("/")
    if not in_workspace and (is_relative or program not in ANYWHERE):
        return (
            "it covers this program only in the workspace's own directory: start it there, without cwd or cd, and give"
            " paths from there"
        )
    word = _find_unknown(program, argv, own)
    return None if word is None else _describe(program, argv, word)


def never_allowed(program: str) -> str | None:
    """Why no rule can allow a program; None if one can."""
    name = _common_name(program)
    if name in RUNNERS:
        return "it can run any other program"
    return "it can change what later commands do" if name in _SHELL_STATE else None


def _common_name(program: str) -> str:
    name = name_of(program)
    name = _OTHER_NAMES.get(name, name)
    short = _VERSION.sub("", name)
    short = _OTHER_NAMES.get(short, short)
    return short if short in _INTERPRETERS else name


def _describe(program: str, argv: Sequence[str], word: str) -> str:
    """What is not covered: an option by its name alone. Other arguments are not repeated: they may be anything."""
    name = word.partition("=")[0][:40]
    if re.fullmatch(r"-[A-Za-z0-9-]+", name):
        return f"it does not cover '{name}'"
    if program in _INTERPRETERS and not word:
        return f"it does not cover {name_of(argv[0])[:40]} without a script: it would run its input"
    if program == "awk" and not word:
        return "it does not cover awk without a program in the rule's own words"
    if program == "git" and not REMOTE_SUBCOMMANDS.isdisjoint(argv) and not word.startswith(("+", ":")):
        return (
            "it covers only the remotes origin and upstream: another name may be a path, whose hooks would run;"
            " name the remote in the rule"
        )
    return "it does not cover one of its arguments"


def _find_unknown(program: str, argv: Sequence[str], own: int) -> str | None:
    """The first word behind the rule's own words that is not known to be harmless."""
    if program in _INTERPRETERS:
        return _check_interpreter(program, argv, own)
    subcommand = program.removeprefix("git-")
    if subcommand != program and subcommand in GIT_SUBCOMMANDS:  # /usr/lib/git-core/git-push
        return _check_git(["git", subcommand, *argv[1:]], own + 1)
    check = _CHECKS.get(program)
    if check is not None:
        return check(argv, own)
    if program in PROJECT_RUNNERS:
        return _check_project_runner(program, argv, own)
    table = PROGRAM_OPTIONS.get(program)
    if table is None and may_run(program):
        return next((word for word in argv[own:] if names_program([program, word])), None)
    return None if table is None else table.find_unknown(argv[own:])


def _check_interpreter(program: str, argv: Sequence[str], own: int) -> str | None:
    letters, instead = _INTERPRETERS[program]
    for place, word in enumerate(argv[1:], 1):
        is_own = place < own
        if is_own and program == "python" and word == "-m" and place + 1 < len(argv):
            module = _common_name(argv[place + 1])
            return _find_unknown(module, argv[place + 1 :], max(1, own - place - 1))
        if is_own and (word in _PROGRAM_TEXT or not word.startswith("-")):
            return None  # the rule names the program or the script; the rest are its arguments
        if not word.startswith("-"):
            return word if may_be_input(word) else None
        if word in instead:  # ruby and lua go on with what is behind
            return None if place + 1 == len(argv) else argv[place + 1]
        if not is_own and (word == "-" or not set(letters).issuperset(word[1:])):
            return word
    return ""  # it would read its program from its input


def _check_git(argv: Sequence[str], own: int) -> str | None:
    place = 1
    while place < len(argv) and argv[place].startswith("-"):
        word = argv[place]
        if place >= own and GIT_GLOBAL.find_unknown([word]) is not None:
            return word
        place += 2 if word in GIT_GLOBAL_VALUED else 1
    if place >= len(argv):
        return None
    name, rest = argv[place], argv[max(own, place + 1) :]
    odd = next((word for word in rest if _is_odd_for_git(name, word)), None)
    table = GIT_SUBCOMMANDS.get(name)
    if table is None:  # covered word by word, as the rule has it
        return name if place >= own else next(iter(rest), None)
    unknown = odd or table.find_unknown(rest)
    if unknown is not None or name not in REMOTE_SUBCOMMANDS:
        return unknown
    is_named = any(not word.startswith("-") for word in argv[place + 1 : own])
    return next((word for word in table.find_operands(rest)[:1] if not is_named and word not in KNOWN_REMOTES), None)


def _is_odd_for_git(subcommand: str, word: str) -> bool:
    """Whether a word forces, deletes or drops something, or lets a format run the program that checks signatures."""
    if subcommand in REMOTE_SUBCOMMANDS and word.startswith(("+", ":")):  # `+main` is --force, `:main` is --delete
        return True
    return word in LOSING.get(subcommand, ()) or (subcommand in FORMATS_SIGNATURES and "%G" in word)


def _check_find(argv: Sequence[str], own: int) -> str | None:
    place = own
    while place < len(argv):
        word = argv[place]
        if word in FIND_VALUED:
            place += 2
            continue
        if word.startswith("-") and word not in FIND_WORDS:
            return word
        place += 1
    return None


def _check_sed(argv: Sequence[str], own: int) -> str | None:
    word = PROGRAM_OPTIONS["sed"].find_unknown(argv[own:])
    script = next((place for place in range(1, len(argv)) if not argv[place].startswith("-")), None)
    if word is not None or script is None:
        return word
    return None if script < own or _HARMLESS_SED.fullmatch(argv[script]) else argv[script]


def _check_tar(argv: Sequence[str], own: int) -> str | None:
    rest = argv[own:]
    # A file of another host is fetched with a program. In `tar tf -- -I x` the dashes are the file.
    odd = next((word for word in rest if ":" in word or word == "--"), None)
    if odd is not None:
        return odd
    if own == 1 and rest and not rest[0].startswith("-"):  # the old form: letters without a dash
        if not set(rest[0]) <= set("tvzjJf"):
            return rest[0]
        rest = rest[1:]
    return PROGRAM_OPTIONS["tar"].find_unknown(rest)


def _check_make(argv: Sequence[str], own: int) -> str | None:
    rest = argv[own:]
    # `make test` is not `make test deploy`, and a variable can be a shell.
    targets = [word for word in rest if not word.startswith("-")]
    pattern = r"[0-9]+" if own > 1 else r"[A-Za-z0-9_./-]+"  # a number belongs to -j
    odd = next((word for word in targets if not re.fullmatch(pattern, word)), None)
    return odd or PROGRAM_OPTIONS["make"].find_unknown(rest)


def _check_go(argv: Sequence[str], own: int) -> str | None:
    for word in argv[own:]:
        name = word.partition("=")[0]
        if word.startswith("-") and name.replace("--", "-", 1) not in GO_OPTIONS:
            return word
    return None


def _check_curl(argv: Sequence[str], own: int) -> str | None:
    rest = argv[own:]
    odd = next((word for word in rest if ":" in word and not _WEB_ADDRESS.match(word)), None)
    return odd or PROGRAM_OPTIONS["curl"].find_unknown(rest)


def _check_cargo(argv: Sequence[str], own: int) -> str | None:
    rest = list(argv[own:])
    end = rest.index("--") if "--" in rest else len(rest)
    toolchain = next((word for word in rest if word.startswith("+")), None)
    word = toolchain or PROGRAM_OPTIONS["cargo"].find_unknown(rest[:end])
    return word or RUST_TEST_OPTIONS.find_unknown(rest[end + 1 :])


def _check_project_runner(program: str, argv: Sequence[str], own: int) -> str | None:
    """A rule on a project tool covers no program that the tool runs, unless its own words say so: ``uv run``."""
    scripts = program in _SCRIPT_RUNNERS  # their `run` starts a script of the project
    rest = argv[own:]
    if _RUN_WORDS.isdisjoint(argv[1:own]):
        odd = next((word for word in rest if word in _RUN_WORDS and not (scripts and word == "run")), None)
        if odd is None and program == "pnpm" and own == 1:  # what pnpm does not know, it runs
            first = next((word for word in rest if word not in ("-s", "--silent")), "install")
            odd = None if first in _PNPM_WORDS else first
        if odd is not None:
            return odd
    return _check_scripts(argv, own) if scripts else None


def _check_scripts(argv: Sequence[str], own: int) -> str | None:
    """``npm`` and others hand other words and everything behind ``--`` to a script; old ones do not quote them."""
    rest = argv[own:]
    odd = next((word for word in rest if word == "--" or not _PLAIN_WORD.fullmatch(word)), None)
    return odd or PROGRAM_OPTIONS["npm"].find_unknown(rest)


def _check_pytest(argv: Sequence[str], own: int) -> str | None:
    """``@file`` is a file of options. ``-p`` loads a module, also behind ``--``."""
    rest = argv[own:]
    odd = next((word for word in rest if word.startswith(("@", "-p"))), None)
    return odd or PROGRAM_OPTIONS["pytest"].find_unknown(rest)


def _check_tree(argv: Sequence[str], own: int) -> str | None:
    """In ``tree -P -- -o x`` the dashes are the pattern."""
    rest = argv[own:]
    return "--" if "--" in rest else PROGRAM_OPTIONS["tree"].find_unknown(rest)


def _check_test(argv: Sequence[str], own: int) -> str | None:
    for word in argv[own:]:
        if "[" in word or (word.startswith("-") and word not in TEST_OPERATORS and not word[1:].isdecimal()):
            return word
    return None


def _check_awk(argv: Sequence[str], own: int) -> str | None:
    """Behind a program that the rule itself has, files; without one, nothing."""
    if own == 1:
        return argv[1] if len(argv) > 1 else ""
    return next((word for word in argv[own:] if word.startswith("-") or "=" in word), None)


def _check_printf(argv: Sequence[str], own: int) -> str | None:
    """``printf %n PATH`` sets a variable."""
    rest = argv[own:]
    return next((word for word in rest if PRINTF_SETS.search(word)), None) or PROGRAM_OPTIONS["printf"].find_unknown(
        rest
    )


def _check_date(argv: Sequence[str], own: int) -> str | None:
    """``date 01012030`` sets the clock."""
    rest, table = argv[own:], PROGRAM_OPTIONS["date"]
    odd = table.find_unknown(rest)
    return odd or next((word for word in table.find_operands(rest) if not word.startswith("+")), None)


def _check_less(argv: Sequence[str], own: int) -> str | None:
    """``+!command`` is run."""
    rest = argv[own:]
    return next((word for word in rest if word.startswith("+")), None) or PROGRAM_OPTIONS["less"].find_unknown(rest)


_CHECKS: Final[dict[str, Callable[[Sequence[str], int], str | None]]] = {
    "awk": _check_awk,
    "cargo": _check_cargo,
    "curl": _check_curl,
    "date": _check_date,
    "find": _check_find,
    "git": _check_git,
    "go": _check_go,
    "less": _check_less,
    "make": _check_make,
    "printf": _check_printf,
    "pytest": _check_pytest,
    "sed": _check_sed,
    "tar": _check_tar,
    "test": _check_test,
    "tree": _check_tree,
}


# -- rules on commands -------------------------------------------------------------------------------------------------

# What a call runs, in the form that rules on commands compare; and the words of such a rule.
#
# Everything that rules on commands need is imported from here, when the first such rule is made: a policy without one
# does not load it, and a toolkit whose policy has one loads nothing later.


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


def write_rule(words: Sequence[str]) -> str | None:
    """The text of ``command`` in a rule about these words; None if a rule cannot be written for them.

    >>> write_rule(["git", "commit", "-m", "two words"])
    "git commit -m 'two words'"
    """
    text = shlex.join(words)
    # A star may stand for other words, and a word that cannot be quoted plainly is not the same word in a rule.
    return text if "*" not in text and plain_commands(text) == [tuple(words)] else None


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
