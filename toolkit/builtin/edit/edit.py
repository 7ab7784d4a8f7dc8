"""``edit``: a piece of text in a file becomes another, and nothing else in it changes.

The file is read, changed and replaced under its lock, and replaced only if it is still what was read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builtin.edit.failure import ambiguous, not_found, unexpected_count
from toolkit.builtin.edit.find import Matches, find_by_lines, find_exact
from toolkit.builtin.edit.rewrite import rewritten
from toolkit.builtin.files.open_with_hint import open_file
from toolkit.builtin.files.whole_file import (
    MAX_BYTES,
    WholeFile,
    bytes_of,
    check_expected,
    read_whole,
    refuse_mixture,
    text_of,
)
from toolkit.builtin.text.diff import brief_diff, unified_diff, visible_diff
from toolkit.errors import InvalidArguments, ToolFailed, ToolkitError
from toolkit.generated import EditInput, EditOutput
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.fs.sandbox_fs import SandboxFS


@dataclass(frozen=True, slots=True)
class _Edited:
    """A file as it was and as it would be."""

    file: WholeFile
    data: bytes
    matches: Matches
    diff: str


def run(args: EditInput, ctx: ToolContext) -> EditOutput:
    with ctx.fs.lock(args.path):
        edited = _edited(args, ctx.fs)
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
    """What an approver sees. Never fails: first the path is judged, and only then may a caller learn of the file."""
    try:
        diff = visible_diff(_edited(args, ctx.fs).diff)
    except ToolkitError as error:
        diff = f"[this call would fail: {error}]\n"
    return Preview(writes=(args.path,), diff=diff)


def text(output: EditOutput) -> str:
    words = "1 replacement" if output.replacements == 1 else f"{output.replacements} replacements"
    if output.match_mode != "exact":
        words += f", found by {output.match_mode} match"
    verb = "would change" if output.dry_run else "changed"
    return f"[{verb} {output.path}: {words}]\n{brief_diff(output.diff)}"


def _edited(args: EditInput, fs: SandboxFS) -> _Edited:
    """Everything up to the write, which changes nothing yet."""
    old, new = _checked(args)
    with open_file(fs, args.path) as opened:
        file = read_whole(opened)
    check_expected(file.path, args.expected_sha256, file.sha256)
    before = text_of(file)
    matches = _found(args, file.path, before, old)
    after = rewritten(before, matches, old, new, limit=MAX_BYTES)
    if after == before:
        words = (
            f"nothing would change in '{file.path}': with its own whitespace, old_string and new_string are the same"
        )
        raise ToolFailed("NO_MATCH", words, path=file.path)
    refuse_mixture(file.path, before, after)
    data = bytes_of(after)
    if len(data) > MAX_BYTES:
        words = f"'{file.path}' would have {len(data)} bytes, and {MAX_BYTES} are the most; nothing was changed"
        raise ToolFailed("TOO_LARGE", words, path=file.path, size=len(data))
    return _Edited(file, data, matches, unified_diff(before, after, file.path))


def _checked(args: EditInput) -> tuple[str, str]:
    """Old and new text. Line ends do not matter in the old one, so neither does half a line end behind it."""
    old, new = args.old_string.replace("\r\n", "\n"), args.new_string
    if old.endswith("\r"):
        old, new = old.removesuffix("\r"), new.removesuffix("\r")
    if not old.strip():
        what = "holds only whitespace" if old else "is empty"
        words = f"old_string {what}, which may stand anywhere; quote text around the place, or use write_file"
        raise ToolFailed("AMBIGUOUS", words)
    if old == new.replace("\r\n", "\n"):
        how = "are the same" if args.old_string == args.new_string else "differ only in line ends, which edit keeps"
        raise InvalidArguments(f"old_string and new_string {how}: nothing would change")
    return old, new


def _found(args: EditInput, path: str, text: str, old: str) -> Matches:
    """Where the old text is, if that is as many times as the caller means."""
    matches = find_exact(text, old)
    if matches is None and args.match_mode == "auto":
        matches = find_by_lines(text, old)
    if matches is None:
        raise not_found(args, path, text, old)
    if args.expected_replacements not in (None, matches.count):
        raise unexpected_count(path, text, matches, args.expected_replacements)
    is_single = matches.count == 1 and not matches.overlap
    # A number says which places are meant unless they overlap, and nothing says it of blocks that are only similar.
    all_are_meant = args.replace_all or (args.expected_replacements is not None and not matches.overlap)
    if not is_single and (not all_are_meant or matches.mode == "block-anchor"):
        raise ambiguous(path, text, matches)
    return matches
