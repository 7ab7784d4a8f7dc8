"""``git_status_summary``: where a repository stands, as ``ctx.git`` tells it, in bounded lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from toolkit.builtin.files.open_with_hint import open_dir
from toolkit.builtin.search.walk import join
from toolkit.generated import GitStatusSummaryInput, GitStatusSummaryOutput
from toolkit.generated.models.git_status_summary import GitStatusSummaryOutputChange, GitStatusSummaryOutputCounts
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.git import Change, GitStatus

MAX_LISTED: Final = 1000
"""How many changes of one kind the output holds."""
MAX_SHOWN: Final = 50
"""How many of them the text shows."""
MAX_RAW: Final = 256 * 1024
"""How many characters of what git wrote the output holds."""

_SHORT: Final = 10


def run(args: GitStatusSummaryInput, ctx: ToolContext) -> GitStatusSummaryOutput:
    open_dir(ctx.fs, args.cwd).close()
    path = ctx.fs.path(args.cwd)
    # Relative, because the workspace may have been given by another name than its real one.
    status = ctx.git.status(args.cwd if path.root else path.text)
    lists = (status.staged, status.unstaged, status.untracked, status.conflicted)
    raw, is_raw_cut = _joined(status.lines())
    return GitStatusSummaryOutput(
        repository_root=status.repository_root,
        branch=status.branch,
        detached=status.detached,
        head=status.head,
        upstream=status.upstream,
        upstream_gone=status.upstream_gone,
        ahead=status.ahead,
        behind=status.behind,
        staged=_rows(status, status.staged),
        unstaged=_rows(status, status.unstaged),
        untracked=_rows(status, status.untracked),
        conflicted=_rows(status, status.conflicted),
        counts=GitStatusSummaryOutputCounts(
            staged=len(status.staged),
            unstaged=len(status.unstaged),
            untracked=len(status.untracked),
            conflicted=len(status.conflicted),
        ),
        hidden=status.hidden,
        clean=status.clean,
        truncated=is_raw_cut or any(len(changes) > MAX_LISTED for changes in lists),
        raw=raw,
    )


def _joined(lines: Iterator[str]) -> tuple[str, bool]:
    """As many whole lines as there is room for, and whether that left any out."""
    kept: list[str] = []
    room = MAX_RAW
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join(kept), True
        kept.append(line)
    return "\n".join(kept), False


def _rows(status: GitStatus, changes: Sequence[Change]) -> list[GitStatusSummaryOutputChange]:
    """The first changes, with paths as the other tools take them."""
    rows: list[GitStatusSummaryOutputChange] = []
    for change in changes[:MAX_LISTED]:
        path = join(status.repository_root, change.path)
        if change.old_path is None:
            rows.append(GitStatusSummaryOutputChange(path=path, status=change.status))
        else:
            old_path = join(status.repository_root, change.old_path)
            rows.append(GitStatusSummaryOutputChange(path=path, status=change.status, old_path=old_path))
    return rows


def text(output: GitStatusSummaryOutput) -> str:
    counts = output.counts
    rows = [_headline(output)]
    rows += _group("conflicted", output.conflicted, counts.conflicted)
    rows += _group("staged", output.staged, counts.staged)
    rows += _group("unstaged", output.unstaged, counts.unstaged)
    rows += _group("untracked", output.untracked, counts.untracked)
    if output.clean:
        rows.append("nothing changed, nothing untracked")
    if output.hidden:
        paths = "1 changed path" if output.hidden == 1 else f"{output.hidden} changed paths"
        rows.append(f"[{paths} not shown: denied by the policy]")
    return "\n".join(rows)


def _headline(output: GitStatusSummaryOutput) -> str:
    words = "detached" if output.branch is None else f"on {output.branch}"
    words += ", no commits yet" if output.head is None else f" at {output.head[:_SHORT]}"
    if output.repository_root != ".":
        words = f"{output.repository_root}: {words}"
    if output.upstream is None:
        return words
    if output.upstream_gone:
        return f"{words}, upstream {output.upstream} is gone"
    apart = [f"{count} {word}" for word, count in (("ahead of", output.ahead), ("behind", output.behind)) if count]
    return f"{words}, {' and '.join(apart) or 'level with'} {output.upstream}"


def _group(title: str, changes: Sequence[GitStatusSummaryOutputChange], count: int) -> Iterator[str]:
    if not count:
        return
    yield f"{title} ({count}):"
    for change in changes[:MAX_SHOWN]:
        status = "" if title == "untracked" else f"{change.status} "
        old = "" if change.old_path is None else f" (was {change.old_path})"
        yield f"  {status}{change.path}{old}"
    if count > MAX_SHOWN:
        yield f"  [{count - MAX_SHOWN} more]"
