"""``write_file``: a file with this content and no other, written as a whole or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builtin.files.whole_file import MAX_BYTES, check_expected
from toolkit.builtin.text.diff import binary_diff, brief_diff, unified_diff, visible_diff
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.generated import WriteFileInput, WriteFileOutput
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.fs.sandbox_fs import SandboxFS
    from toolkit.guard.fs.write import Fingerprint, Written


@dataclass(frozen=True, slots=True)
class _Before:
    """The file that will be replaced; ``data`` is None where it is too large to be compared."""

    fingerprint: Fingerprint
    data: bytes | None


def run(args: WriteFileInput, ctx: ToolContext) -> WriteFileOutput:
    data = _checked(args)
    with ctx.fs.lock(args.path):
        before = _before(args, ctx.fs)
        written = _write(args, data, before, ctx.fs)
    return WriteFileOutput(
        path=written.path,
        created=written.created,
        bytes_written=written.size,
        sha256=hashlib.sha256(data).hexdigest(),
        diff=_diff(before, args.content, written.path),
    )


def preview(args: WriteFileInput, ctx: ToolContext) -> Preview:
    """What an approver sees. Never fails: first the path is judged, and only then may a caller learn of the file."""
    try:
        _checked(args)
        diff = visible_diff(_diff(_before(args, ctx.fs), args.content, ctx.fs.path(args.path).shown))
    except ToolkitError as error:
        diff = f"[this call would fail: {error}]\n"
    return Preview(writes=(args.path,), diff=diff)


def text(output: WriteFileOutput) -> str:
    size = f"{output.bytes_written} byte{'s' * (output.bytes_written != 1)}"
    if output.created:  # whoever wrote it knows what is in it
        return f"[created {output.path}, {size}]"
    if not output.diff:
        return f"[{output.path} had this content already, {size}]"
    return f"[replaced {output.path}, now {size}]\n{brief_diff(output.diff)}"


def _checked(args: WriteFileInput) -> bytes:
    """The content in bytes; the schema counts characters, of which one may have four."""
    data = args.content.encode()
    if len(data) > MAX_BYTES:
        words = f"the content has {len(data)} bytes, of which at most {MAX_BYTES} are written; nothing was changed"
        raise ToolFailed("TOO_LARGE", words, size=len(data))
    return data


def _before(args: WriteFileInput, fs: SandboxFS) -> _Before | None:
    """The file as it is, if it may be replaced; None if there is none."""
    try:
        file = fs.open_file(args.path)
    except ToolFailed as error:
        if error.reason != "NOT_FOUND":
            raise
        check_expected(fs.path(args.path).shown, args.expected_sha256, None)
        return None
    with file:
        if args.create_only:
            raise _exists_already(file.path)
        data = file.read(file.size) if file.size <= MAX_BYTES else None
        fingerprint = file.fingerprint()
        if args.expected_sha256 is not None:
            fingerprint = fs.fingerprint(args.path) if data is None else file.fingerprint(data)
            check_expected(file.path, args.expected_sha256, fingerprint.sha256)
    return _Before(fingerprint, data)


def _write(args: WriteFileInput, data: bytes, before: _Before | None, fs: SandboxFS) -> Written:
    """What was there must be the same, and what was not there must not have come meanwhile: the diff tells the truth."""
    if before is not None:
        return fs.write_file(args.path, data, expected=before.fingerprint)
    try:
        return fs.write_file(args.path, data, create_only=True)
    except ToolFailed as error:
        if error.reason != "ALREADY_EXISTS":
            raise
        shown = fs.path(args.path).shown
        if args.create_only:
            raise _exists_already(shown) from None
        words = f"'{shown}' came into being during the call and was left alone; read it first"
        raise ToolFailed("CONFLICT", words, path=shown) from None


def _exists_already(shown: str) -> ToolFailed:
    words = f"'{shown}' exists already; change it with edit, or replace it without create_only"
    return ToolFailed("ALREADY_EXISTS", words, path=shown)


def _diff(before: _Before | None, content: str, shown: str) -> str:
    if before is not None and before.data is None:
        return f"[no diff: the old file had {before.fingerprint.size} bytes]\n"
    old = None if before is None else before.data
    if "\0" in content or (old is not None and b"\0" in old):
        return binary_diff(shown)
    return unified_diff(None if old is None else old.decode(errors="surrogateescape"), content, shown)
