"""Options of git that neither write a file of the caller's choice nor run a program, by subcommand.

Not listed, on purpose: ``--output``, ``--ext-diff``, ``--textconv``, ``--no-index``, ``-O``, ``--show-signature``, ``-S`` of
commit, ``--edit``, ``--upload-pack``, ``--receive-pack``, ``--force``. A subcommand that is not listed is covered only word
by word as the rule has it.
"""

from __future__ import annotations

from typing import Final

from toolkit.guard.policy.commands.option_table import OptionTable, make_table

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
