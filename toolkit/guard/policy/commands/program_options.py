"""Options of common programs that neither write a file of the caller's choice nor run a program of the caller's choice.

Only programs that also have other options are listed here; ``READERS`` have none. For a program in neither list, the author
of an allow rule answers for its options.
"""

from __future__ import annotations

from typing import Final

from toolkit.guard.policy.commands.option_table import OptionTable, make_table

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
