"""Opening what the caller named, with a hint when it is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.fs.handles import OpenFile, SandboxDir
    from toolkit.guard.fs.sandbox_fs import SandboxFS


def open_file(fs: SandboxFS, path: str) -> OpenFile:
    try:
        return fs.open_file(path)
    except ToolFailed as error:
        raise _with_hint(fs, path, error) from None


def open_dir(fs: SandboxFS, path: str) -> SandboxDir:
    try:
        return fs.open_dir(path)
    except ToolFailed as error:
        raise _with_hint(fs, path, error) from None


def _with_hint(fs: SandboxFS, path: str, error: ToolFailed) -> ToolFailed:
    if error.reason != "NOT_FOUND":
        return error
    shown = error.details.get("path")
    # A link that leads nowhere is missing under its own name.
    near = [name for name in fs.similar_paths(path) if name != shown]
    if not near:
        return error
    words = " or ".join(f"'{name}'" for name in near)
    return ToolFailed("NOT_FOUND", f"{error.message}. Did you mean {words}?", path=shown, near=near)
