"""Options by which ordinary programs run another program or text of the caller's choice.

Deny and ask rules do not look into them: a command with one of them counts as unreadable. Not listed are interpreters and
editors (``awk``, ``python -c``, ``vim -c``): what they do by themselves is not seen anyway.

Limit: an option that a glob or the input of ``xargs`` adds is not seen; ``sort *`` would be unreadable otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

# In brackets is what may be left out: GNU programs take abbreviations of long options. A single letter may be combined with
# others. An option of one dash and several letters, and a word without a dash, are compared as they are.
_OPTIONS: Final = {
    "cpio": "--rsh-c[ommand]",
    "diff3": "--d[iff-program]",
    "gcc": "-wrapper",
    "go": "-exec --exec -toolexec --toolexec -vettool --vettool",
    "install": "--strip-[program]",
    "ip": "exec -b --batch -batch",
    "make": "--ev[al] -E",
    "man": "-P -H --pa[ger] --h[tml]",
    "mosh": "--ssh --client --server",
    "nc": "-e -c",
    "ncat": "-e -c --exec --sh-exec --lua-exec",
    "nix": "-c --command run",
    "nodemon": "-x -e --ex[ec]",
    "prove": "-e --e[xec] --source",
    "rg": "--pre --hostname-bin",
    "rsync": "-e -M --rs[h] --rsync-[path] --remote-o[ption]",
    "scp": "-S -o -F -D",
    "sdiff": "--d[iff-program]",
    "sftp": "-S -o -F -D -b",
    "sort": "--co[mpress-program]",
    "split": "--f[ilter]",
    "tar": "-I -F --to-[command] --us[e-compress-program] --checkpoint-[action] --rm[t-command] --rs[h-command]"
    " --inf[o-script] --new-[volume-script]",
    "tcpdump": "-z",
    "wget": "--use-[askpass] -e --ex[ecute]",
    "zip": "-TT --unz[ip-command]",
}  # fmt: skip
_SAME: Final = {
    "bsdtar": "tar", "c++": "gcc", "c89": "gcc", "c99": "gcc", "cc": "gcc", "cpp": "gcc", "g++": "gcc",
    "ginstall": "install", "gmake": "make", "gsort": "sort", "gsplit": "split",
    "gtar": "tar", "netcat": "nc",
}  # fmt: skip


def _compile(options: str) -> re.Pattern[str]:
    patterns = []
    for option in options.split():
        needed, _, rest = option.removesuffix("]").partition("[")
        if len(option) == len("-x") and option.startswith("-"):
            patterns.append(rf"-[A-Za-z0-9]*{option[1]}.*")
        else:
            optional = "".join(f"(?:{re.escape(letter)}" for letter in rest) + ")?" * len(rest)
            patterns.append(rf"{re.escape(needed)}{optional}(?:=.*)?")
    return re.compile("|".join(patterns), re.DOTALL)


_PATTERNS: Final = {name: _compile(options) for name, options in _OPTIONS.items()}
_MAKE_FILE: Final = re.compile(r"(?:-[A-Za-z]*?f|--(?:fi|make)[a-z]*)=?(.*)", re.DOTALL)
_MAKE_SHELL: Final = re.compile(r"\.?SHELL(?:FLAGS)?[:+?!]*=.*", re.DOTALL)
# What compilers have around their names.
_TARGET_AND_VERSION: Final = re.compile(r"^[a-z0-9_]+-linux-gnu[a-z0-9]*-|-[0-9][0-9.]*$")


def may_run(name: str) -> bool:
    """Whether a program is listed here."""
    return _common_name(name) in _OPTIONS


def names_program(argv: Sequence[str]) -> bool:
    """Whether a command of a program that is listed here has an option that makes it run something.

    >>> names_program(["split", "--fil=sh", "f"]), names_program(["split", "-l", "5", "f"])
    (True, False)
    """
    name = _common_name(argv[0])
    words = list(argv[1:])
    if name == "tar" and words and not words[0].startswith("-"):  # the old form: letters without a dash
        words[0] = "-" + words[0]
    return any(map(_PATTERNS[name].fullmatch, words)) or (name == "make" and _makes_input(words))


def may_be_input(path: str) -> bool:
    """Whether a path may be the program's own input: ``/dev/stdin``, ``/proc/self/fd/0`` and whatever leads there."""
    names = path.split("/")
    return (path.startswith("/") or ".." in names) and ("dev" in names or "proc" in names)


def _common_name(program: str) -> str:
    name = _TARGET_AND_VERSION.sub("", program)
    return _SAME.get(name, name)


def _makes_input(words: Sequence[str]) -> bool:
    """Whether the Makefile is the input, or a variable is the shell of all its lines."""
    for word, following in pairwise([*words, ""]):
        found = _MAKE_FILE.fullmatch(word)
        file = "" if found is None else found[1] or following
        if file == "-" or may_be_input(file) or _MAKE_SHELL.fullmatch(word):
            return True
    return False
