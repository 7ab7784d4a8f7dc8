"""``write_file``: creates a file or replaces its whole content, atomically."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builtin.files.whole_file import MAX_BYTES, check_expected
from toolkit.builtin.text.diff import binary_diff, brief_diff, format_count, unified_diff, visible_diff
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.generated import WriteFileInput, WriteFileOutput
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.write import Fingerprint, WrittenFile


@dataclass(frozen=True, slots=True)
class _OldFile:
    """The file that will be replaced; ``data`` is None if it is too large to compare."""

    fingerprint: Fingerprint
    data: bytes | None


def run(args: WriteFileInput, ctx: ToolContext) -> WriteFileOutput:
    data = _encode_content(args)
    with ctx.fs.lock(args.path):
        before = _read_old(args, ctx.fs)
        written = _write(args, data, before, ctx.fs)
    return WriteFileOutput(
        path=written.path,
        created=written.created,
        bytes_written=written.size,
        sha256=hashlib.sha256(data).hexdigest(),
        diff=_diff(before, args.content, written.path),
    )


def preview(args: WriteFileInput, ctx: ToolContext) -> Preview:
    """What an approver sees. It never fails: the policy judges the path before the caller may learn about the file."""
    return Preview(writes=(args.path,), make_diff=lambda: _preview_diff(args, ctx.fs))


def text(output: WriteFileOutput) -> str:
    size = format_count(output.bytes_written, "byte")
    if output.created:  # the model knows what it wrote
        return f"[created {output.path}, {size}]"
    if not output.diff:
        return f"[{output.path} already had this content, {size}]"
    return f"[replaced {output.path}, now {size}]\n{brief_diff(output.diff)}"


def _preview_diff(args: WriteFileInput, fs: SandboxFS) -> str:
    try:
        _encode_content(args)
        return visible_diff(_diff(_read_old(args, fs), args.content, fs.path(args.path).shown))
    except ToolkitError as error:
        return f"[this call would fail: {error}]\n"


def _encode_content(args: WriteFileInput) -> bytes:
    """The content in bytes; the schema limits characters, and one may take four bytes."""
    data = args.content.encode()
    if len(data) > MAX_BYTES:
        message = f"the content has {len(data)} bytes, but at most {MAX_BYTES} can be written; nothing was changed"
        raise ToolFailed("TOO_LARGE", message, size=len(data))
    return data


def _read_old(args: WriteFileInput, fs: SandboxFS) -> _OldFile | None:
    """The current file, if it may be replaced; None if there is none."""
    try:
        file = fs.open_file(args.path)
    except ToolFailed as error:
        if error.reason != "NOT_FOUND":
            raise
        check_expected(fs.path(args.path).shown, args.expected_sha256, None)
        return None
    with file:
        if args.create_only:
            raise _already_exists(file.path)
        data = file.read(file.size) if file.size <= MAX_BYTES else None
        fingerprint = file.fingerprint()
        if args.expected_sha256 is not None:
            fingerprint = fs.fingerprint(args.path) if data is None else file.fingerprint(data)
            check_expected(file.path, args.expected_sha256, fingerprint.sha256)
    return _OldFile(fingerprint, data)


def _write(args: WriteFileInput, data: bytes, before: _OldFile | None, fs: SandboxFS) -> WrittenFile:
    """Write only if the file is still what was read, or still does not exist, so that the diff is right."""
    if before is not None:
        return fs.write_file(args.path, data, expected=before.fingerprint)
    try:
        return fs.write_file(args.path, data, create_only=True)
    except ToolFailed as error:
        if error.reason != "ALREADY_EXISTS":
            raise
        shown = fs.path(args.path).shown
        if args.create_only:
            raise _already_exists(shown) from None
        message = f"'{shown}' was created concurrently and was not changed; read it first"
        raise ToolFailed("CONFLICT", message, path=shown) from None


def _already_exists(shown: str) -> ToolFailed:
    message = f"'{shown}' already exists; change it with edit, or replace it without create_only"
    return ToolFailed("ALREADY_EXISTS", message, path=shown)


def _diff(before: _OldFile | None, content: str, shown: str) -> str:
    if before is not None and before.data is None:
        return f"[no diff: the old file had {before.fingerprint.size} bytes]\n"
    old = None if before is None else before.data
    if "\0" in content or (old is not None and b"\0" in old):
        return binary_diff(shown)
    return unified_diff(None if old is None else old.decode(errors="surrogateescape"), content, shown)
