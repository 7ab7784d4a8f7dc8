"""Command rules: how a command is compared with a rule word by word, and what an allow rule never covers.

Limit: the lists below can never be complete, because a program may get another option that writes or runs something. They
catch mistakes in rules. What a command can really do is decided by the process sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

# Programs that run other programs: no allow rule covers them, and deny rules also look at the program that they run.
RUNNERS: Final = frozenset(
    {
        ".", "ash", "bash", "builtin", "busybox", "chroot", "command", "csh", "dash", "doas", "env", "eval", "exec", "fish",
        "ionice", "ksh", "nice", "nohup", "nsenter", "parallel", "script", "setsid", "sh", "source", "ssh", "stdbuf",
        "strace", "su", "sudo", "taskset", "time", "timeout", "unshare", "watch", "xargs", "zsh",
    }
)  # fmt: skip

# Arguments that make a reading program write, delete or run something.
_RISKY: Final[dict[str, re.Pattern[str]]] = {
    program: re.compile("|".join(words))
    for program, words in {
        "awk": [".*"],
        "curl": ["-[a-zA-Z]*[oOTKdF].*", "--output.*", "--upload.*", "--config.*", "--data.*", "--form.*", "--remote-name.*"],
        "fd": ["-[a-zA-Z]*[xX].*", "--exec.*"],
        "find": ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint.*", "-files0-from"],
        "git": [
            "-c.*", "-C.*", "-O.*", "-[xu]", "--config-env.*", "--exec.*", "--ext-diff", "--git-dir.*", "--namespace.*",
            "--open-files-in-pager.*", "--output.*", "--receive-pack.*", "--textconv", "--upload-pack.*", "--work-tree.*",
        ],
        "go": ["-exec.*", "-toolexec.*"],
        "less": ["-[oO].*", "--log-file.*", r"\+.*"],
        "man": ["-[PH].*", "--pager.*", "--html.*"],
        "node": ["-[a-zA-Z]*[epr].*", "--eval.*", "--print.*", "--require.*", "--import.*", "-"],
        "perl": ["-[a-zA-Z]*[eEi].*", "-"],
        "python": ["-[a-zA-Z]*[cm].*", "-"],
        "python3": ["-[a-zA-Z]*[cm].*", "-"],
        "rg": ["--pre.*", "--hostname-bin.*", "-z", "--search-zip"],
        "ruby": ["-[a-zA-Z]*[ei].*", "-"],
        "sort": ["-o.*", "--output.*", "--compress-program.*", "-T.*"],
        "tar": [
            "-[a-zA-Z]*[IFxcruA].*", "[a-zA-Z]*[xcruA][a-zA-Z]*", "--checkpoint-action.*", "--create", "--delete",
            "--extract", "--get", "--info-script.*", "--new-volume-script.*", "--rsh-command.*", "--to-command.*",
            "--use-compress-program.*",
        ],
        "tee": [".*"],
        "tree": ["-o.*"],
        "wget": [".*"],
        "zip": ["-T.*", "--unzip-command.*"],
    }.items()
}  # fmt: skip
# The only sed scripts that certainly do nothing but print: line ranges, and substitutions without the flags e and w.
_HARMLESS_SED: Final = re.compile(r"[0-9]*(,[0-9]+|,\$)?\$?p|s/[^/]*/[^/]*/[gpiI0-9]*")


def begins_with(argv: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the command begins with the rule's words. Compares words, not text: ``git logout`` is not ``git log``."""
    return tuple(argv[: len(words)]) == tuple(words)


def mentions(argv: Sequence[str], words: Sequence[str]) -> bool:
    """``begins_with`` for deny and ask: also by path (``/bin/rm``), and after a program that runs others (``sudo rm``)."""
    if not argv:
        return False
    named = (argv[0].rpartition("/")[2], *argv[1:])
    if begins_with(named, words) or begins_with(argv, words):
        return True
    behind = [(argv[i].rpartition("/")[2], *argv[i + 1 :]) for i in range(1, len(argv))] if named[0] in RUNNERS else []
    return any(begins_with(rest, words) for rest in behind)


def is_risky(argv: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the command does more than its rule's words say: it runs another program, or has an option that writes."""
    program = argv[0]
    # Words that the rule itself contains were considered by its author.
    rest = argv[max(1, len(words)) :]
    if program in RUNNERS:
        return True
    if program == "sed":
        options = [word for word in rest if word.startswith("-")]
        script = next((word for word in rest if not word.startswith("-")), "")
        return any(option not in ("-n", "-E", "-r") for option in options) or not _HARMLESS_SED.fullmatch(script)
    pattern = _RISKY.get(program)
    return pattern is not None and any(pattern.fullmatch(word) for word in rest)
