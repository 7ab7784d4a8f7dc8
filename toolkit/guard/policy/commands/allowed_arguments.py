"""What an allow rule covers behind its own words: only arguments that are known to be harmless, by exact spelling.

Promise: for a program of ``program_options`` or ``git_options``, a command is covered only if each option behind the rule's
words is in the table. Programs that run others, and shell builtins that change what later commands mean, are never covered.
An interpreter is covered only with a script that is a file. In another directory than the workspace itself, only programs are
covered that run nothing they find there.

Limit: for a program in no table the author of the rule answers, as for what a script, a Makefile or a test does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from toolkit.guard.policy.command_options import PROJECT_RUNNERS, RUNNERS, RUNS_PROGRAM
from toolkit.guard.policy.commands.git_options import (
    FORMATS_SIGNATURES,
    GIT_GLOBAL,
    GIT_GLOBAL_VALUED,
    GIT_SUBCOMMANDS,
    KNOWN_REMOTES,
    LOSING,
    REMOTE_SUBCOMMANDS,
)
from toolkit.guard.policy.commands.look_through import PRINTF_SETS, name_of
from toolkit.guard.policy.commands.program_options import (
    ANYWHERE,
    FIND_VALUED,
    FIND_WORDS,
    GO_OPTIONS,
    PROGRAM_OPTIONS,
    RUST_TEST_OPTIONS,
    TEST_OPERATORS,
)
from toolkit.guard.policy.commands.running_options import may_be_input, may_run, names_program

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
