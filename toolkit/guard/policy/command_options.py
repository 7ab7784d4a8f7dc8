"""What is known about the options of programs, as tables: which are harmless, and which run another program.

Of git, these are not listed, on purpose: ``--output``, ``--ext-diff``, ``--textconv``, ``--no-index``, ``-O``,
``--show-signature``, ``-S`` of commit, ``--edit``, ``--upload-pack``, ``--receive-pack``, ``--force``. A subcommand that is
not listed is covered only word by word as the rule has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

# -- tables of options -------------------------------------------------------------------------------------------------

# Which options of a program are known to be harmless, and whether a list of arguments has any other.
#
# Promise: an option counts only in its exact spelling. Short options that are combined (``-la``) are taken apart,
# abbreviations of long ones are never known, and a value that is a separate word must not look like an option. So a
# table that is wrong about a value cannot hide an option.

_NEGATIVE_NUMBER: Final = re.compile(r"-[0-9]+")


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The harmless options of one program, and how many operands it may have.

    >>> table = make_table("nu", "k", "--stat --format= --color[=]", operands=1)
    >>> table.find_unknown(["-un", "-k2", "--color=always", "file"]), table.find_unknown(["-uo", "file"])
    (None, '-uo')
    """

    flags: str
    """Letters of options without a value."""
    valued: str
    """Letters of options with a value, in the same word or in the next."""
    glued: str
    """Letters of options whose value, if any, is in the same word."""
    long_flags: frozenset[str]
    long_valued: frozenset[str]
    long_optional: frozenset[str]
    operands: int | None
    """The maximum number; None for any."""
    takes_numbers: bool
    """Whether ``-5`` is an option."""
    ends_at_operand: bool
    """Whether everything behind the first operand is an operand."""

    def find_unknown(self, words: Sequence[str]) -> str | None:
        """The first word that is not known to be harmless; None if all are."""
        place = operands = 0
        while place < len(words):
            word = words[place]
            if word == "--" or (self.ends_at_operand and not _is_option(word)):
                rest = words[place + (word == "--") :]
                allowed = len(rest) if self.operands is None else self.operands - operands
                return rest[allowed] if len(rest) > allowed else None
            if not _is_option(word):
                operands += 1
                if self.operands is not None and operands > self.operands:
                    return word
                place += 1
                continue
            used = self._count_words(word)
            if used == 0 or (used == 2 and not _is_value(words[place + 1 : place + 2])):
                return word
            place += used
        return None

    def find_operands(self, words: Sequence[str]) -> list[str]:
        """The words that are neither options nor their values, if ``find_unknown`` finds nothing.

        >>> make_table("q", "j").find_operands(["-q", "-j", "4", "origin", "--", "main"])
        ['origin', 'main']
        """
        operands: list[str] = []
        place = 0
        while place < len(words):
            word = words[place]
            if word == "--":
                return [*operands, *words[place + 1 :]]
            if not _is_option(word):
                operands.append(word)
            place += max(1, self._count_words(word)) if _is_option(word) else 1
        return operands

    def _count_words(self, word: str) -> int:
        """How many words an option takes, one or two; 0 if it is not known."""
        if self.takes_numbers and _NEGATIVE_NUMBER.fullmatch(word):
            return 1
        if word.startswith("--"):
            name, has_value, _ = word.partition("=")
            if has_value:
                return int(name in self.long_valued or name in self.long_optional)
            return 2 if name in self.long_valued else int(name in self.long_flags or name in self.long_optional)
        for place, letter in enumerate(word[1:], 2):
            if letter in self.glued:
                return 1
            if letter in self.valued:
                return 1 if word[place:] else 2
            if letter not in self.flags:
                return 0
        return 1


def make_table(
    flags: str = "",
    valued: str = "",
    long: str = "",
    *,
    glued: str = "",
    operands: int | None = None,
    takes_numbers: bool = False,
    ends_at_operand: bool = False,
) -> OptionTable:
    """``long`` lists options; one that ends in ``=`` needs a value, one that ends in ``[=]`` may have one."""
    names = long.split()
    return OptionTable(
        flags,
        valued,
        glued,
        frozenset(name for name in names if not name.endswith(("=", "[=]"))),
        frozenset(name[:-1] for name in names if name.endswith("=")),
        frozenset(name[:-3] for name in names if name.endswith("[=]")),
        operands,
        takes_numbers,
        ends_at_operand,
    )


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _is_value(following: Sequence[str]) -> bool:
    return bool(following) and (not _is_option(following[0]) or _NEGATIVE_NUMBER.fullmatch(following[0]) is not None)


GIT_GLOBAL: Final = make_table(
    "P", "", "--no-pager --no-optional-locks --literal-pathspecs --version --no-replace-objects --no-lazy-fetch"
)
GIT_GLOBAL_VALUED: Final = frozenset({"-C", "-c", "--attr-source", "--git-dir", "--namespace", "--work-tree"})
"""Only a rule's own words may have these."""

KNOWN_REMOTES: Final = frozenset({"origin", "upstream"})
"""What git takes for the name of a remote is a path if there is no such remote. These are hardly ever names of folders."""
REMOTE_SUBCOMMANDS: Final = frozenset({"fetch", "pull", "push"})
"""Their first operand is a remote. ``clone`` and ``ls-remote`` are covered only word by word."""
FORMATS_SIGNATURES: Final = frozenset({"diff-tree", "log", "reflog", "rev-list", "shortlog", "show"})
"""``%G`` in a format of theirs checks signatures, as ``--show-signature`` does."""
# What destroys history or work that cannot be brought back.
LOSING: Final = {"reflog": frozenset({"delete", "drop", "expire", "write"}), "stash": frozenset({"clear", "drop"})}

_DIFF: Final = """
    --patch --no-patch --raw --stat[=] --numstat --shortstat --compact-summary --dirstat[=] --summary --name-only
    --name-status
    --cached --staged --merge-base --minimal --patience --histogram --diff-algorithm= --unified= --function-context
    --inter-hunk-context= --color[=] --no-color --color-words[=] --color-moved[=] --word-diff[=] --word-diff-regex=
    --no-renames
    --find-renames[=] --find-copies[=] --find-copies-harder --full-index --binary --abbrev[=] --no-abbrev --diff-filter=
    --ignore-space-at-eol --ignore-cr-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines
    --ignore-submodules[=] --submodule[=] --exit-code --quiet --no-ext-diff --no-textconv --text --relative[=] --no-relative
    --src-prefix= --dst-prefix= --no-prefix --check --pickaxe-all --pickaxe-regex --patch-with-stat --patch-with-raw
    --stat-width= --stat-name-width= --stat-count= --ws-error-highlight= --indent-heuristic --no-indent-heuristic
    """
_LOG: Final = """
    --oneline --graph --no-graph --all --branches[=] --tags[=] --remotes[=] --decorate[=] --no-decorate --pretty[=] --format=
    --abbrev-commit --no-abbrev-commit --max-count= --skip= --since= --after= --until= --before= --author=
    --committer= --grep=
    --all-match --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp --fixed-strings --perl-regexp --merges
    --no-merges --first-parent --not --reverse --date= --relative-date --parents --children --left-right --cherry-pick
    --cherry-mark --cherry --left-only --right-only --boundary --simplify-by-decoration --full-history --dense --sparse
    --simplify-merges --ancestry-path[=] --topo-order --date-order --author-date-order --follow --full-diff --log-size
    --no-walk[=] --walk-reflogs --source --use-mailmap --mailmap --no-mailmap --notes[=] --no-notes --cc --diff-merges=
    --encoding= --expand-tabs[=] --no-expand-tabs
    """
_LIST: Final = "--list --contains= --no-contains= --merged[=] --no-merged[=] --points-at= --sort= --format= --color[=]"
_LOG_TABLE: Final = make_table("EFPRWabcgimpqstuwz", "GLSUln", _DIFF + _LOG, glued="BCDMX", takes_numbers=True)

GIT_SUBCOMMANDS: Final[dict[str, OptionTable]] = {
    "add": make_table("ANnuv", "", "--all --update --verbose --dry-run --intent-to-add --refresh --ignore-errors"),
    "blame": make_table(
        "bceflnpstw", "L", "--porcelain --line-porcelain --incremental --show-name --show-number --show-email --root"
        " --first-parent --since= --date= --abbrev= --ignore-rev= --color-lines --color-by-age", glued="CM",
    ),
    "branch": make_table("ailqrv", "", f"--all --remotes --verbose --quiet --show-current --ignore-case {_LIST}"),
    "cat-file": make_table("epst", "", "--batch[=] --batch-check[=] --batch-all-objects --follow-symlinks"),
    "checkout": make_table("bqt", "", "--quiet --track[=] --no-track --detach --ours --theirs --progress --no-progress"),
    "commit": make_table(
        "aqsv", "m", "--all --amend --no-edit --message= --quiet --verbose --signoff --allow-empty --dry-run --short"
        " --porcelain --no-gpg-sign --only --include",
    ),
    "count-objects": make_table("vH", "", "--verbose --human-readable"),
    "describe": make_table(
        "", "", "--all --tags --contains --always --long --exact-match --first-parent --abbrev= --candidates= --match="
        " --exclude= --dirty[=] --broken[=]",
    ),
    "diff": make_table("RWabpqsuwz", "GSUl", _DIFF, glued="BCDMX", takes_numbers=True),
    "diff-tree": make_table("RWabcmprstuwz", "GSUl", _DIFF + " --root --stdin --cc --always --no-commit-id", glued="BCDMX"),
    "fetch": make_table(
        "pqtv", "j", "--all --prune --tags --no-tags --quiet --verbose --dry-run --depth= --deepen= --unshallow --jobs="
        " --progress",
    ),
    "for-each-ref": make_table("", "", f"--count= --ignore-case {_LIST}"),
    "grep": make_table(
        "EFGHILPWachilnopqrvwz", "ABCem", "--cached --untracked --recursive --no-recursive --text --ignore-case --word-regexp"
        " --invert-match --extended-regexp --fixed-strings --perl-regexp --basic-regexp --line-number --column --name-only"
        " --files-with-matches --files-without-match --only-matching --count --color[=] --no-color --break --heading"
        " --show-function --function-context --context= --after-context= --before-context= --max-depth= --max-count="
        " --threads= --and --or --not --all-match --quiet --null --full-name", takes_numbers=True,
    ),
    "log": _LOG_TABLE,
    "ls-files": make_table(
        "cdfikmostuvz", "x", "--cached --deleted --modified --others --ignored --stage --unmerged --killed --directory"
        " --exclude= --exclude-standard --error-unmatch --full-name --abbrev[=] --eol --deduplicate --format=",
    ),
    "ls-tree": make_table("dlrtz", "", "--long --name-only --name-status --object-only --full-name --full-tree"
        " --abbrev[=] --format="),
    "merge": make_table(
        "nqv", "m", "--abort --quit --no-edit --ff --no-ff --ff-only --squash --no-squash --stat --no-stat --quiet --verbose"
        " --no-gpg-sign",
    ),
    "merge-base": make_table("a", "", "--all --octopus --independent --is-ancestor --fork-point"),
    "mv": make_table("knv", "", "--dry-run --verbose"),
    "pull": make_table("qv", "", "--ff-only --rebase[=] --no-rebase --prune --quiet --verbose --no-edit --autostash"),
    "push": make_table("nquv", "", "--dry-run --quiet --set-upstream --tags --verbose --porcelain --progress --follow-tags"),
    "reflog": _LOG_TABLE,
    "remote": make_table("v", "", "--verbose", operands=0),
    "restore": make_table("SWq", "s", "--staged --worktree --source= --quiet --ours --theirs"),
    "rev-list": make_table("EFPgi", "n", _LOG + " --count --objects --use-bitmap-index --timestamp", takes_numbers=True),
    "rev-parse": make_table(
        "q", "", "--abbrev-ref[=] --all --branches[=] --git-dir --is-inside-work-tree --is-bare-repository"
        " --quiet --remotes[=]"
        " --short[=] --show-toplevel --show-prefix --show-cdup --symbolic --symbolic-full-name --tags[=] --verify",
    ),
    "rm": make_table("nqr", "", "--cached --dry-run --quiet --ignore-unmatch"),
    "shortlog": make_table("cens", "w", _LOG + " --numbered --summary --email --group=", takes_numbers=True),
    "show": _LOG_TABLE,
    "show-ref": make_table("dhqs", "", "--head --tags --heads --dereference --hash[=] --verify --abbrev[=] --quiet"),
    "stash": make_table(
        "akpqu", "m", "--all --include-untracked --keep-index --no-keep-index --message= --quiet --patch --stat --name-only"
        " --name-status --index --staged",
    ),
    "status": make_table(
        "bsvz", "", "--short --branch --long --verbose --porcelain[=] --untracked-files[=] --ignored[=]"
        " --ignore-submodules[=]"
        " --show-stash --ahead-behind --no-ahead-behind --renames --no-renames --find-renames[=] --column[=] --no-column",
        glued="u",
    ),
    "switch": make_table("cqt", "", "--create --quiet --track[=] --no-track --detach --guess --no-guess"),
    "tag": make_table("ail", "m", f"--annotate --message= --ignore-case --column[=] --no-column {_LIST}", glued="n"),
}  # fmt: skip


# -- harmless options --------------------------------------------------------------------------------------------------

# Options of common programs that neither write a file of the caller's choice nor run a program of the caller's choice.
#
# Only programs that also have other options are listed here; ``READERS`` have none. For a program in neither list, the author
# of an allow rule answers for its options.

READERS: Final = frozenset(
    {
        ":", "basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "egrep", "expand", "expr",
        "false", "fgrep", "fold", "grep", "head", "id", "jq", "join", "ls", "md5sum", "nl", "od", "paste", "pwd", "readlink",
        "realpath", "rev", "seq", "sha1sum", "sha256sum", "sha512sum", "sleep", "stat", "tac", "tail", "tr", "true", "type",
        "uname", "unexpand", "wc", "which", "whoami",
    }
)  # fmt: skip
"""Programs without any option that writes or runs something, and that run nothing they find where they are started."""

_CARGO: Final = make_table(
    "qrv",
    "Fjp",
    "--quiet --verbose --release --workspace --all --lib --bins --tests --examples --benches --doc --all-targets"
    " --all-features"
    " --no-default-features --no-run --no-fail-fast --keep-going --locked --offline --frozen --check --version"
    " --package= --exclude= --features= --bin= --test= --example= --bench= --jobs= --profile= --message-format= --color=",
)
RUST_TEST_OPTIONS: Final = make_table(
    "q",
    "",
    "--nocapture --no-capture --show-output --exact --ignored --include-ignored --quiet --list --test-threads= --skip=",
)
"""What may stand behind the ``--`` of ``cargo test``."""
_NODE_RUNNER: Final = make_table(
    "sw",
    "",
    "--silent --if-present --workspaces --workspace= --version --verbose --json --production --frozen-lockfile",
)

# xxd and tree read combined letters in ways of their own: for them, no letter takes the next word as its value.
PROGRAM_OPTIONS: Final[dict[str, OptionTable]] = {
    "cargo": _CARGO,
    "curl": make_table(
        "46ILNSfgisv", "m", "--silent --show-error --fail --location --head --include --verbose --compressed"
        " --http1.1 --http2"
        " --max-time= --connect-timeout= --retry= --ipv4 --ipv6 --version",
    ),
    "date": make_table("Ru", "d", "--utc --universal --rfc-email --iso-8601[=] --rfc-3339= --date=", glued="I"),
    "fd": make_table(
        "0FHILagipsu", "Edet", "--hidden --no-ignore --no-ignore-vcs --unrestricted --case-sensitive"
        " --ignore-case --glob --regex"
        " --fixed-strings --absolute-path --follow --full-path --print0 --type= --extension= --exclude="
        " --max-depth= --min-depth="
        " --exact-depth= --size= --changed-within= --changed-before= --max-results= --color= --threads= --version",
    ),
    "file": make_table("0LNbhiknprs", "", "--brief --mime --mime-type --mime-encoding --dereference"
        " --no-dereference --version"),
    "history": make_table(operands=1),
    "jobs": make_table("lnprs"),
    "less": make_table("EFGIMNQRSXegimnqs"),
    "make": make_table(
        "Bikns", "", "--always-make --ignore-errors --keep-going --just-print --dry-run --silent --quiet --no-print-directory"
        " --jobs[=] --output-sync[=] --version", glued="jO",
    ),
    "man": make_table("afk", ""),
    "npm": _NODE_RUNNER,
    "pnpm": _NODE_RUNNER,
    "printf": make_table(ends_at_operand=True),
    "pytest": make_table(
        "lqsvxh", "kmnr", "--quiet --verbose --exitfirst --maxfail= --lf --last-failed --ff --failed-first --nf"
        " --new-first --sw"
        " --stepwise --tb= --co --collect-only --durations= --durations-min= --markers --fixtures --showlocals --no-header"
        " --no-summary --capture= --show-capture= --color= --strict-markers --strict-config --runxfail --deselect= --ignore="
        " --ignore-glob= --numprocesses= --dist= --version --help --doctest-modules --setup-show --randomly-seed=",
    ),
    "rg": make_table(
        "0FHILNPSUachilnopqsuvwx", "ABCEMTdefgjmrt",
        "--line-number --no-line-number --ignore-case --smart-case --case-sensitive --word-regexp --line-regexp"
        " --files-with-matches --files-without-match --files --count --count-matches --invert-match --only-matching"
        " --with-filename --no-filename --fixed-strings --pcre2 --multiline --multiline-dotall --text --follow --hidden"
        " --no-ignore --no-ignore-vcs --unrestricted --quiet --null --json --heading --no-heading --column"
        " --no-column --stats"
        " --trim --vimgrep --passthru --type-list --sort= --sortr= --regexp= --glob= --iglob= --type= --type-not="
        " --after-context= --before-context= --context= --max-count= --max-columns= --max-depth= --max-filesize= --threads="
        " --replace= --encoding= --color= --engine= --version --no-config",
    ),
    "sed": make_table(
        "Enrsuz", "", "--quiet --silent --regexp-extended --null-data --separate --unbuffered --posix --version",
    ),
    "shuf": make_table("erz", "in", "--echo --repeat --zero-terminated --head-count= --input-range="),
    "sort": make_table(
        "CMRVbcdfghimnrsuz", "Skt", "--ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort"
        " --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort="
        " --version-sort"
        " --check[=] --debug --key= --merge --stable --field-separator= --unique --zero-terminated --parallel= --version",
    ),
    "tar": make_table("tvzjJ", "f", "--list --verbose --gzip --bzip2 --xz --zstd --file= --wildcards --exclude="),
    "tee": make_table(operands=0),
    "tree": make_table(
        "CDFIJLNPSXadfghilnpqrstuv", "", "--dirsfirst --noreport --prune --gitignore --du --charset= --filelimit= --matchdirs"
        " --ignore-case --si --inodes --device --version",
    ),
    "uniq": make_table(
        "Dcdiuz", "fsw", "--count --repeated --all-repeated[=] --unique --ignore-case --zero-terminated --skip-fields="
        " --skip-chars= --check-chars= --group[=]", operands=1,
    ),
    "wget": make_table(operands=0),
    "xxd": make_table("Eabeipu", glued="cgl", operands=1),
    "yarn": _NODE_RUNNER,
    "zip": make_table("0123456789jlqruvy"),
}  # fmt: skip

ANYWHERE: Final = READERS | {
    "date", "fd", "file", "find", "printf", "rg", "sed", "shuf", "sort", "tar", "test", "tree", "uniq", "xxd",
}  # fmt: skip
"""Programs that an allow rule also covers in another directory than the workspace itself."""

# Tests and actions of find: those without a value, those with one.
FIND_WORDS: Final = frozenset(
    {
        "!", "(", ")", ",", "-a", "-and", "-d", "-daystart", "-depth", "-empty", "-executable", "-false", "-follow", "-help",
        "-H", "-ignore_readdir_race", "-L", "-ls", "-mount", "-nogroup", "-noleaf", "-not", "-nouser", "-nowarn", "-o", "-or",
        "-P", "-print", "-print0", "-prune", "-quit", "-readable", "-true", "-version", "-warn", "-writable", "-xdev",
    }
)  # fmt: skip
FIND_VALUED: Final = frozenset(
    {
        "-amin", "-anewer", "-atime", "-cmin", "-cnewer", "-ctime", "-fstype", "-gid", "-group", "-ilname",
        "-iname", "-inum", "-ipath",
        "-iregex", "-iwholename", "-links", "-lname", "-maxdepth", "-mindepth", "-mmin", "-mtime", "-name", "-newer",
        "-newermt", "-path", "-perm", "-printf", "-regex", "-regextype", "-samefile", "-size", "-type", "-uid", "-used",
        "-user", "-wholename", "-xtype",
    }
)  # fmt: skip
TEST_OPERATORS: Final = frozenset(
    {
        "-a", "-b", "-c", "-d", "-e", "-ef", "-eq", "-f", "-g", "-ge", "-G", "-gt", "-h", "-k", "-L", "-le", "-lt",
        "-n", "-N",
        "-ne", "-nt", "-o", "-O", "-ot", "-p", "-r", "-s", "-S", "-t", "-u", "-w", "-x", "-z",
    }
)  # fmt: skip
GO_OPTIONS: Final = frozenset(
    {
        "-v", "-x", "-n", "-race", "-short", "-cover", "-json", "-failfast", "-benchmem", "-a", "-m", "-u", "-run", "-count",
        "-timeout", "-bench", "-benchtime", "-p", "-parallel", "-cpu", "-tags", "-shuffle",
    }
)  # fmt: skip


# -- options that run something ----------------------------------------------------------------------------------------

# Options by which ordinary programs run another program or text of the caller's choice.
#
# Deny and ask rules do not look into them: a command with one of them counts as unreadable. Not listed are interpreters and
# editors (``awk``, ``python -c``, ``vim -c``): what they do by themselves is not seen anyway.
#
# Limit: an option that a glob or the input of ``xargs`` adds is not seen; ``sort *`` would be unreadable otherwise.

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


# -- wrappers ----------------------------------------------------------------------------------------------------------

# Programs that run other programs, and the options before the command that they run.
#
# Only what is listed here can be skipped. A wrapper with any other option counts as unreadable, abbreviations included.

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
