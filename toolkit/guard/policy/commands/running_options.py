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
    "g++": "-wrapper",
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
    "bsdtar": "tar", "cc": "gcc", "c++": "g++", "ginstall": "install", "gmake": "make", "gsort": "sort", "gsplit": "split",
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
# A Makefile that is the input, or another file that nobody wrote; or the shell of all its lines.
_MAKE_INPUT: Final = re.compile(
    r"-[A-Za-z]*f(?:-|/dev/.*|/proc/.*)|--(?:fi|make)[a-z]*=(?:-|/dev/.*|/proc/.*)|\.?SHELL(?:FLAGS)?[:+?!]*=.*",
    re.DOTALL,
)
_MAKE_FILE: Final = re.compile(r"-[A-Za-z]*f|--(?:fi|make)[a-z]*")

PROGRAMS: Final = frozenset(_OPTIONS.keys() | _SAME.keys())


def names_program(argv: Sequence[str]) -> bool:
    """Whether a command of one of ``PROGRAMS`` has an option that makes it run something.

    >>> names_program(["split", "--fil=sh", "f"]), names_program(["split", "-l", "5", "f"])
    (True, False)
    """
    name = _SAME.get(argv[0], argv[0])
    words = list(argv[1:])
    if name == "tar" and words and not words[0].startswith("-"):  # the old form: letters without a dash
        words[0] = "-" + words[0]
    return any(map(_PATTERNS[name].fullmatch, words)) or (name == "make" and _makes_input(words))


def _makes_input(words: Sequence[str]) -> bool:
    return any(
        _MAKE_INPUT.fullmatch(word)
        or (_MAKE_FILE.fullmatch(word) and (following == "-" or following.startswith(("/dev/", "/proc/"))))
        for word, following in pairwise([*words, ""])
    )
