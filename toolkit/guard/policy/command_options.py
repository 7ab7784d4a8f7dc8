"""Programs that run other programs, and the options before the command that they run.

Only what is listed here can be skipped. A wrapper with any other option counts as unreadable, abbreviations included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

SHELLS: Final = frozenset(
    {
        "ash", "bash", "bash-static", "csh", "dash", "elvish", "fish", "hush", "ksh", "ksh93", "lksh", "mksh", "nu", "oksh",
        "posh", "pwsh", "rbash", "sh", "tcsh", "xonsh", "yash", "zsh",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What stands between a wrapper and the command that it runs."""

    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with a value, in the same word or in the next."""
    glued: str = ""
    """Letters of options whose value, if any, is in the same word."""
    text: str = ""
    """Letters of options whose value is shell text."""
    long_flags: frozenset[str] = field(default_factory=frozenset)
    long_valued: frozenset[str] = field(default_factory=frozenset)
    long_text: frozenset[str] = field(default_factory=frozenset)
    operands: int = 0
    """How many words stand before the command: the time of ``timeout``, the host of ``ssh``."""
    takes_numbers: bool = False
    """Whether ``-5`` is an option."""
    takes_assignments: bool = False
    """Whether ``NAME=value`` may stand before the command."""
    joins: bool = False
    """Whether the words of the command are joined to shell text."""
    starts_shell: bool = False
    """Whether it starts a shell that reads its input if no command is given."""
    takes_more_words: bool = False
    """Whether it adds words to the command that are not known here."""


@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """What a wrapper runs: a command, and the values of its options that are shell text."""

    words: tuple[str, ...]
    texts: tuple[str, ...]
    assigned: tuple[str, ...]
    """Names of variables that it sets."""


def _wrapper(
    flags: str = "",
    valued: str = "",
    long: str = "",
    *,
    glued: str = "",
    text: str = "",
    operands: int = 0,
    takes_numbers: bool = False,
    takes_assignments: bool = False,
    joins: bool = False,
    starts_shell: bool = False,
    takes_more_words: bool = False,
) -> Wrapper:
    """``long`` lists names; one that ends in ``=`` has a value, one that ends in ``!`` has shell text as its value."""
    names = long.split()
    return Wrapper(
        flags,
        valued,
        glued,
        text,
        frozenset(name for name in names if name[-1] not in "=!"),
        frozenset(name[:-1] for name in names if name[-1] == "="),
        frozenset(name[:-1] for name in names if name[-1] == "!"),
        operands,
        takes_numbers,
        takes_assignments,
        joins,
        starts_shell,
        takes_more_words,
    )


WRAPPERS: Final[dict[str, Wrapper]] = {
    "builtin": _wrapper(),
    "chroot": _wrapper("", "", "skip-chdir groups= userspec=", operands=1, starts_shell=True),
    "command": _wrapper("pvV"),
    "doas": _wrapper("Lns", "Cu", starts_shell=True),
    "env": _wrapper(
        "0iv",
        "Cu",
        "ignore-environment null debug list-signal-handling block-signal default-signal ignore-signal chdir= unset="
        " split-string!", text="S", takes_assignments=True,
    ),
    "eval": _wrapper(joins=True),
    "exec": _wrapper("cl", "a"),
    "flock": _wrapper(
        "Feonsuvx", "Ew", "shared exclusive unlock nonblock nb close no-fork verbose timeout= wait= conflict-exit-code=",
        operands=1,
    ),
    "ionice": _wrapper("t", "cnpPu", "ignore class= classdata= pid= pgid= uid="),
    "nice": _wrapper("", "n", "adjustment=", takes_numbers=True),
    "nohup": _wrapper(),
    "script": _wrapper(
        "aefq", "BEIOTmo", "append flush force quiet return echo= log-in= log-out= log-io= log-timing= logging-format="
        " output-limit= command!", glued="t", text="c", starts_shell=True,
    ),
    "setsid": _wrapper("cfw", "", "ctty fork wait"),
    "ssh": _wrapper(
        "46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeiJLlmpQRWw", operands=1, joins=True, starts_shell=True,
    ),
    "stdbuf": _wrapper("", "eio", "error= input= output="),
    "strace": _wrapper("CDFTVYZcdfhikqrtvwxyz", "IOPSUXabepsu"),
    "su": _wrapper(
        "PTflmp", "Ggsw", "login preserve-environment fast pty no-pty group= supp-group= shell= whitelist-environment="
        " command! session-command!", text="c", starts_shell=True,
    ),
    "sudo": _wrapper(
        "ABEHPSbikns", "CDRTUghprtu",
        "askpass background bell login non-interactive preserve-env preserve-groups reset-timestamp set-home shell stdin"
        " chdir= chroot= close-from= command-timeout= group= host= other-user= prompt= role= type= user=",
        takes_assignments=True, starts_shell=True,
    ),
    "time": _wrapper("apqv", "fo", "append portability quiet verbose format= output="),
    "timeout": _wrapper("fpv", "ks", "foreground preserve-status verbose kill-after= signal=", operands=1),
    "unshare": _wrapper(
        "CTUcfimnpru", "GRSw",
        "cgroup fork ipc keep-caps kill-child map-auto map-current-user map-root-user mount mount-proc net pid time user"
        " uts propagation= root= setgid= setgroups= setuid= wd=",
        starts_shell=True,
    ),
    "watch": _wrapper(
        "bcegptwx", "nqs", "beep chgexit color differences equexit= errexit exec interval= no-title no-wrap precise",
        glued="d", joins=True,
    ),
    "xargs": _wrapper(
        "0oprtx", "EILPadns",
        "eof exit interactive max-lines no-run-if-empty null open-tty replace show-limits verbose arg-file= delimiter="
        " max-args= max-chars= max-procs= process-slot-var=",
        glued="eil", takes_more_words=True,
    ),
}  # fmt: skip
# Wrappers whose options may also stand behind the operands, which are not a command.
PERMUTING: Final = frozenset({"script", "su"})

# Shell builtins that run text, or change what later words mean.
OPAQUE_BUILTINS: Final = frozenset(
    {
        "alias", "bind", "compgen", "complete", "declare", "enable", "fc", "hash", "let", "local", "mapfile", "readarray",
        "typeset",
    }
)  # fmt: skip
# Shell builtins that evaluate what is in the brackets of `name[...]`.
EVALUATES_BRACKETS: Final = frozenset({"[", "export", "read", "readonly", "test", "unset", "wait"})
SHELL_BUILTINS: Final = frozenset({".", "source", "trap", *OPAQUE_BUILTINS, *EVALUATES_BRACKETS} - {"[", "test"})

# Programs that run others in ways that are not looked into: any later word counts as a program, quoted text as shell text.
OTHER_RUNNERS: Final = frozenset(
    {
        "aarch64", "abduco", "arm64", "armv7l", "armv8l", "aws-vault", "bear", "bwrap", "catatonit", "catchsegv",
        "ccache", "cgexec", "chamber", "choom", "chpst", "chronic", "chrt", "concurrently", "coresched", "coreutils",
        "cpulimit", "cross-env", "cross-env-shell", "daemonize", "dbus-launch", "dbus-run-session", "debconf", "distcc",
        "doppler", "dotenv", "dotenvx", "dtach", "dumb-init", "eatmydata", "entr", "envchain", "envdir", "envuidgid",
        "fakechroot", "fakeroot", "fakeroot-sysv", "fakeroot-tcp", "faketime", "firejail", "gosu", "guix",
        "hyperfine", "i386", "i486", "i586", "i686", "icecc", "ifne", "keep-one-running", "lckdo", "libtool",
        "linux32", "linux64", "logsave", "ltrace", "machinectl", "memusage", "minijail0", "mispipe", "nix-shell", "nocorrect",
        "noglob", "nsjail", "numactl", "pee", "perf", "pipesz", "pkexec", "ppc64le", "prlimit", "proot", "proxychains",
        "proxychains4", "rlwrap", "run-one", "run-parts", "run-this-one", "runcon", "s390x", "s6-setuidgid",
        "scan-build", "sccache", "scriptlive", "setarch", "setlock", "setpriv", "setuidgid", "softlimit", "sotruss",
        "ssh-agent", "start-stop-daemon", "su-exec", "systemd-cat", "systemd-inhibit", "systemd-nspawn", "systemd-run",
        "systemd-socket-activate", "taskset", "tini", "tmux", "torsocks", "trickle", "uclampset", "uname26",
        "unbuffer", "valgrind", "watchexec", "x86_64", "xtrace", "xvfb-run",
    }
)  # fmt: skip
# Programs that run what they read from their input, or from arguments in a form of their own.
UNREADABLE_RUNNERS: Final = frozenset(
    {
        "at", "batch", "capsh", "expect", "gdb", "lftp", "lldb", "newgrp", "nsenter", "parallel", "runuser", "screen",
        "sem", "sg", "socat",
    }
)  # fmt: skip
# Project tools that run a program behind the word `run` or `exec`. Allow rules may name them.
PROJECT_RUNNERS: Final = frozenset(
    {
        "asdf", "bun", "bunx", "bundle", "conda", "deno", "direnv", "hatch", "mamba", "micromamba", "mise", "npm",
        "npx", "pdm", "pipenv", "pipx", "pixi", "pnpm", "poetry", "pyenv", "rbenv", "rustup", "rye", "uv", "uvx", "yarn",
    }
)  # fmt: skip
# Behind these words of a project tool is a program; those that are tools themselves run one at once.
RUNS_PROGRAM: Final = frozenset({"bunx", "exec", "explore", "npx", "run", "uvx", "x"})
RUNNERS: Final = (
    SHELLS | WRAPPERS.keys() | OTHER_RUNNERS | UNREADABLE_RUNNERS | {".", "busybox", "source", "toybox"}
)  # fmt: skip
"""No allow rule covers them."""


def unwrap(wrapper: Wrapper, argv: Sequence[str], *, permutes: bool = False) -> WrappedCommand | None:
    """What is behind the options of a wrapper; None if one of them is not known."""
    texts: list[str] = []
    place = 1
    while place < len(argv):
        word = argv[place]
        if word == "--":
            place += 1
            break
        if not word.startswith("-"):
            if not permutes:
                break
            place += 1
            continue
        used = _skip_option(wrapper, word, argv[place + 1 : place + 2], texts)
        if used is None:
            return None
        place += used
    if permutes:
        return WrappedCommand(tuple(argv[place:]), tuple(texts), ())
    assigned: list[str] = []
    while wrapper.takes_assignments and place < len(argv) and "=" in argv[place]:
        assigned.append(argv[place].partition("=")[0])
        place += 1
    return WrappedCommand(tuple(argv[place + wrapper.operands :]), tuple(texts), tuple(assigned))


def _skip_option(wrapper: Wrapper, word: str, following: Sequence[str], texts: list[str]) -> int | None:
    """How many words an option takes, one or two; None if it is not known."""
    if word == "-" or (wrapper.takes_numbers and word[1:].isdecimal()):
        return 1
    if word.startswith("--"):
        name, has_value, value = word[2:].partition("=")
        if name in wrapper.long_text:
            texts += [value] if has_value else following
        elif name not in wrapper.long_flags and name not in wrapper.long_valued:
            return None
        return 1 if has_value or name in wrapper.long_flags else 2
    for place, letter in enumerate(word[1:], 2):
        if letter in wrapper.glued:
            return 1
        if letter in wrapper.text:
            texts += [word[place:]] if word[place:] else following
        if letter in wrapper.valued or letter in wrapper.text:
            return 1 if word[place:] else 2
        if letter not in wrapper.flags:
            return None
    return 1
