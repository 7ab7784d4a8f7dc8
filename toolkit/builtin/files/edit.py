"""``edit``: replaces text in a file and changes nothing else in it.

The file is read, changed and replaced under its lock, and replaced only if it is still what was read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builtin.files.replacement import (
    Matches,
    ambiguous,
    find_by_lines,
    find_exact,
    not_found,
    rewrite,
    unexpected_count,
)
from toolkit.builtin.files.whole_file import (
    MAX_BYTES,
    WholeFile,
    check_expected,
    decode_text,
    encode_text,
    open_file,
    read_whole,
    refuse_mixed_encodings,
)
from toolkit.builtin.text.diff import brief_diff, format_count, unified_diff, visible_diff
from toolkit.errors import InvalidArguments, ToolFailed, ToolkitError
from toolkit.generated import EditInput, EditOutput
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS


@dataclass(frozen=True, slots=True)
class _PreparedEdit:
    """A file before and after the edit."""

    file: WholeFile
    data: bytes
    matches: Matches
    diff: str


def run(args: EditInput, ctx: ToolContext) -> EditOutput:
    with ctx.fs.lock(args.path):
        edited = _prepare(args, ctx.fs)
        if not args.dry_run:
            ctx.fs.write_file(args.path, edited.data, expected=edited.file.fingerprint)
    return EditOutput(
        path=edited.file.path,
        replacements=edited.matches.count,
        match_mode=edited.matches.mode,
        diff=edited.diff,
        sha256=edited.file.sha256 if args.dry_run else hashlib.sha256(edited.data).hexdigest(),
        dry_run=args.dry_run,
    )


def preview(args: EditInput, ctx: ToolContext) -> Preview:
    """What an approver sees. It never fails: the policy judges the path before the caller may learn about the file."""
    return Preview(writes=(args.path,), make_diff=lambda: _preview_diff(args, ctx.fs))


def text(output: EditOutput) -> str:
    summary = format_count(output.replacements, "replacement")
    if output.match_mode != "exact":
        summary += f", by {output.match_mode} match"
    verb = "would change" if output.dry_run else "changed"
    return f"[{verb} {output.path}: {summary}]\n{brief_diff(output.diff)}"


def _preview_diff(args: EditInput, fs: SandboxFS) -> str:
    try:
        return visible_diff(_prepare(args, fs).diff)
    except ToolkitError as error:
        return f"[this call would fail: {error}]\n"


def _prepare(args: EditInput, fs: SandboxFS) -> _PreparedEdit:
    """Everything up to the write."""
    old, new = _check_texts(args)
    with open_file(fs, args.path) as opened:
        file = read_whole(opened)
    check_expected(file.path, args.expected_sha256, file.sha256)
    before = decode_text(file)
    matches = _find(args, file.path, before, old)
    after = rewrite(before, matches, old, new, limit=MAX_BYTES)
    if after == before:
        message = (
            f"nothing would change in '{file.path}':"
            " old_string and new_string differ only in whitespace, which the file keeps"
        )
        raise ToolFailed("NO_MATCH", message, path=file.path)
    refuse_mixed_encodings(file.path, before, after)
    data = encode_text(after)
    if len(data) > MAX_BYTES:
        message = (
            f"'{file.path}' would have {len(data)} bytes, but at most {MAX_BYTES} are allowed; nothing was changed"
        )
        raise ToolFailed("TOO_LARGE", message, path=file.path, size=len(data))
    return _PreparedEdit(file, data, matches, unified_diff(before, after, file.path))


def _check_texts(args: EditInput) -> tuple[str, str]:
    """Old and new text. Line endings are ignored in the old one, so a trailing carriage return is dropped too."""
    old, new = args.old_string.replace("\r\n", "\n"), args.new_string
    if old.endswith("\r"):
        old, new = old.removesuffix("\r"), new.removesuffix("\r")
    if not old.strip():
        what = "is only whitespace" if old else "is empty"
        message = f"old_string {what}, which matches almost anywhere; include text around the place, or use write_file"
        raise ToolFailed("AMBIGUOUS", message)
    if old == new.replace("\r\n", "\n"):
        how = "are the same" if args.old_string == args.new_string else "differ only in line endings, which edit keeps"
        raise InvalidArguments(f"old_string and new_string {how}: nothing would change")
    return old, new


def _find(args: EditInput, path: str, text: str, old: str) -> Matches:
    """The places of the old text, if there are as many as the caller expects."""
    matches = find_exact(text, old)
    if matches is None and args.match_mode == "auto":
        matches = find_by_lines(text, old)
    if matches is None:
        raise not_found(args, path, text, old)
    if args.expected_replacements not in (None, matches.count):
        raise unexpected_count(path, text, matches, args.expected_replacements)
    is_single = matches.count == 1 and not matches.overlap
    # A number identifies the places unless they overlap; nothing identifies blocks that are only similar.
    means_all = args.replace_all or (args.expected_replacements is not None and not matches.overlap)
    if not is_single and (not means_all or matches.mode == "block-anchor"):
        raise ambiguous(path, text, matches)
    return matches
