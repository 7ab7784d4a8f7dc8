"""Which commands a command runs, for deny and ask rules: looks through wrappers, as far as they can be read.

Promise: a command behind a wrapper of ``wrapper_options`` (``sh -c``, ``env``, ``xargs``, ``find -exec``, ``sudo``,
``git -c alias.x=!…`` and others, in each other as well) is found, or the whole counts as unreadable, which every deny and
ask rule on commands matches. Unreadable are: shell text that ``run_commands`` cannot read or that is for a shell of another
grammar, options of a wrapper that are not known, options of ``running_options``, shells that read their input, variables that
make programs run other code, nesting deeper than 8 wrappers, and commands that are longer than the process guard accepts.
Time is linear in the length of the command.

Limit: what a program does by itself is not seen. A script, ``make``, ``awk``, ``python -c``, a link to a denied program under
another name: the process sandbox decides what they can do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.guard.policy.command_options import (
    EVALUATES_BRACKETS,
    OPAQUE_BUILTINS,
    OTHER_RUNNERS,
    PERMUTING,
    PROJECT_RUNNERS,
    RUNNERS,
    RUNS_PROGRAM,
    SHELL_BUILTINS,
    SHELLS,
    UNREADABLE_RUNNERS,
    WRAPPERS,
    unwrap,
)
from toolkit.guard.policy.commands.git_runs import find_git_runs
from toolkit.guard.policy.commands.running_options import may_be_input, may_run, names_program
from toolkit.guard.policy.commands.shell_words import MAX_TEXT, UNKNOWN_WORDS, plain_commands, run_commands
from toolkit.guard.process.environment import runs_other_code

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


def _has_unknown_words(words: Iterable[str]) -> bool:
    return any(UNKNOWN_WORDS in word for word in words)


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
