"""``apply_patch``: changes many files at once, all of them or none.

The patch is parsed, every file it names is read, and its new content is computed. Only then is anything written, in one
transaction that fails if a file is no longer what was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from toolkit.builtin.patch.parse import Patch, parse_patch
from toolkit.builtin.patch.plan import Content, Original, plan_patch
from toolkit.builtin.text.diff import format_count, visible_diff
from toolkit.errors import ToolkitError
from toolkit.files.transaction import Drop, FileChange, Put
from toolkit.generated import ApplyPatchInput, ApplyPatchOutput
from toolkit.generated.models.apply_patch import ApplyPatchOutputFile
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.builtin.patch.plan import PatchPlan

MAX_SHOWN_FILES: Final = 100
MAX_SHOWN_DIFF: Final = 8 * 1024
_MARKS: Final = {"add": "A", "update": "M", "delete": "D", "move": "R"}


def run(args: ApplyPatchInput, ctx: ToolContext) -> ApplyPatchOutput:
    patch = parse_patch(args.patch)
    fs = ctx.fs
    with fs.lock(*_writes(patch)):
        plan = plan_patch(patch, fs, ctx.signal.check)
        if not args.dry_run:
            fs.transaction(_changes(plan))
    files = [
        ApplyPatchOutputFile(
            path=part.path, action=part.action, moved_to=part.moved_to, added=part.added, removed=part.removed
        )
        for part in plan.parts
    ]
    return ApplyPatchOutput(files=files, diff=plan.diff, applied=not args.dry_run)


def preview(args: ApplyPatchInput, ctx: ToolContext) -> Preview:
    """What an approver sees. Fails only if the patch cannot be parsed; otherwise the policy judges its paths first."""
    patch = parse_patch(args.patch)
    return Preview(reads=_reads(patch), writes=_writes(patch), make_diff=lambda: _preview_diff(patch, ctx))


def _preview_diff(patch: Patch, ctx: ToolContext) -> str:
    try:
        return visible_diff(plan_patch(patch, ctx.fs, ctx.signal.check).diff)
    except ToolkitError as error:
        return f"[this call would fail: {error}]\n"


def _reads(patch: Patch) -> tuple[str, ...]:
    """The files whose content the result contains or depends on."""
    return tuple(dict.fromkeys(one.path for one in patch.operations if one.content is None and one.verb != "delete"))


def _writes(patch: Patch) -> tuple[str, ...]:
    """Every path that may be written, moved or deleted."""
    names = ((one.target,) if one.verb == "copy" else (one.path, one.target) for one in patch.operations)
    return tuple(dict.fromkeys(name for pair in names for name in pair))


def _changes(plan: PatchPlan) -> list[FileChange]:
    return [_to_change(*one) for one in plan.changes]


def _to_change(path: str, original: Original | None, content: Content | None) -> FileChange:
    expected = None if original is None else original.fingerprint
    if content is None:
        assert expected is not None, "a file that does not exist cannot be dropped"
        return Drop(path, expected)
    return Put(path, content.data(), expected, mode=content.mode, executable=content.executable)


def text(output: ApplyPatchOutput) -> str:
    count = len(output.files)
    files = format_count(count, "file")
    head = f"[applied: {files}]" if output.applied else f"[dry run, not applied: {files} would change]"
    rows = [head, *map(_row, output.files[:MAX_SHOWN_FILES])]
    if count > MAX_SHOWN_FILES:
        rows.append(f"[and {count - MAX_SHOWN_FILES} more]")
    return "\n".join(rows if output.applied else [*rows, *_diff_rows(output.diff)])


def _row(file: ApplyPatchOutputFile) -> str:
    where = file.path if file.moved_to is None else f"{file.path} -> {file.moved_to}"
    counts = [f"+{file.added}"] * (file.added > 0) + [f"-{file.removed}"] * (file.removed > 0)
    return " ".join((_MARKS[file.action], where, *counts))


def _diff_rows(diff: str) -> Iterator[str]:
    """As many lines of the diff as there is room for."""
    room = MAX_SHOWN_DIFF
    rows = visible_diff(diff).removesuffix("\n").split("\n") if diff else []
    for number, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            yield f"[{len(rows) - number} more lines of the diff]"
            return
        yield row
