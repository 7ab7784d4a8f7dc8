"""Opens the file or directory the caller named; if it does not exist, the error suggests similar names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.files.handles import OpenFile, SandboxDir
    from toolkit.guard.files.sandbox_fs import SandboxFS


def open_file(fs: SandboxFS, path: str) -> OpenFile:
    try:
        return fs.open_file(path)
    except ToolFailed as error:
        raise _add_hint(fs, path, error) from None


def open_dir(fs: SandboxFS, path: str) -> SandboxDir:
    try:
        return fs.open_dir(path)
    except ToolFailed as error:
        raise _add_hint(fs, path, error) from None


def _add_hint(fs: SandboxFS, path: str, error: ToolFailed) -> ToolFailed:
    if error.reason != "NOT_FOUND":
        return error
    shown = error.details.get("path")
    # A broken link is reported missing under its own name.
    near = [name for name in fs.similar_paths(path) if name != shown]
    if not near:
        return error
    names = " or ".join(f"'{name}'" for name in near)
    return ToolFailed("NOT_FOUND", f"{error.message}. Did you mean {names}?", path=shown, near=near)
