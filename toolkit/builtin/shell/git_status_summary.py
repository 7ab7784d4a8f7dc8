"""``git_status_summary``: the status of a repository as reported by ``ctx.git``, in bounded lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from toolkit.builtin.files.whole_file import open_dir
from toolkit.builtin.search.walk import join_path
from toolkit.builtin.text.diff import format_count
from toolkit.generated import GitStatusSummaryInput, GitStatusSummaryOutput
from toolkit.generated.models.git_status_summary import GitStatusSummaryOutputChange, GitStatusSummaryOutputCounts
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.git import GitChange, GitStatus

MAX_LISTED: Final = 1000
"""Maximum number of changes of one kind in the output."""
MAX_SHOWN: Final = 50
"""Maximum number of them in the text form."""
MAX_RAW: Final = 256 * 1024
"""Maximum number of characters of git's output."""

_SHORT_HASH: Final = 10


def run(args: GitStatusSummaryInput, ctx: ToolContext) -> GitStatusSummaryOutput:
    open_dir(ctx.fs, args.cwd).close()
    path = ctx.fs.path(args.cwd)
    # Relative, because the workspace may have been given by a path that is not its real one.
    status = ctx.git.status(args.cwd if path.root else path.text)
    lists = (status.staged, status.unstaged, status.untracked, status.conflicted)
    raw, is_raw_cut = _join_lines(status.lines())
    return GitStatusSummaryOutput(
        repository_root=status.repository_root,
        branch=status.branch,
        detached=status.detached,
        head=status.head,
        upstream=status.upstream,
        upstream_gone=status.upstream_gone,
        ahead=status.ahead,
        behind=status.behind,
        staged=_to_output(status, status.staged),
        unstaged=_to_output(status, status.unstaged),
        untracked=_to_output(status, status.untracked),
        conflicted=_to_output(status, status.conflicted),
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


def _join_lines(lines: Iterator[str]) -> tuple[str, bool]:
    """As many whole lines as there is room for, and whether any were left out."""
    kept: list[str] = []
    room = MAX_RAW
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join(kept), True
        kept.append(line)
    return "\n".join(kept), False


def _to_output(status: GitStatus, changes: Sequence[GitChange]) -> list[GitStatusSummaryOutputChange]:
    """The first changes, with paths as the other tools accept them."""
    rows: list[GitStatusSummaryOutputChange] = []
    for change in changes[:MAX_LISTED]:
        path = join_path(status.repository_root, change.path)
        if change.old_path is None:
            rows.append(GitStatusSummaryOutputChange(path=path, status=change.status))
        else:
            old_path = join_path(status.repository_root, change.old_path)
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
        rows.append(f"[{format_count(output.hidden, 'changed path')} not shown: denied by the policy or not approved]")
    return "\n".join(rows)


def _headline(output: GitStatusSummaryOutput) -> str:
    headline = "detached" if output.branch is None else f"on {output.branch}"
    headline += ", no commits yet" if output.head is None else f" at {output.head[:_SHORT_HASH]}"
    if output.repository_root != ".":
        headline = f"{output.repository_root}: {headline}"
    if output.upstream is None:
        return headline
    if output.upstream_gone:
        return f"{headline}, upstream {output.upstream} no longer exists"
    apart = [f"{count} {word}" for word, count in (("ahead of", output.ahead), ("behind", output.behind)) if count]
    return f"{headline}, {' and '.join(apart) or 'up to date with'} {output.upstream}"


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
