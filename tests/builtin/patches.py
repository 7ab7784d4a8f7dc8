"""Patches for tests, and the trees they are applied to."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from tests.builtin.workspace import toolkit_for
from toolkit import ToolFailed, ToolkitError


def envelope(*parts: str) -> str:
    """An envelope with these parts, each ending in a line feed."""
    return "*** Begin Patch\n" + "".join(parts) + "*** End Patch\n"


def update(path: str, *rows: str, to: str | None = None) -> str:
    move = "" if to is None else f"*** Move to: {to}\n"
    return f"*** Update File: {path}\n{move}" + "".join(f"{row}\n" for row in rows)


def add(path: str, *rows: str) -> str:
    return f"*** Add File: {path}\n" + "".join(f"+{row}\n" for row in rows)


def delete(path: str) -> str:
    return f"*** Delete File: {path}\n"


def write(root: Path, files: Mapping[str, bytes | str]) -> None:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def files_in(root: Path) -> dict[str, bytes]:
    """Every file by its path, including hidden ones and links; a link shows its target."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            info = path.lstat()
            data = os.fsencode(os.readlink(path)) if path.is_symlink() else b"no file"
            found[path.relative_to(root).as_posix()] = path.read_bytes() if stat.S_ISREG(info.st_mode) else data
    return found


def outcome(root: Path, patch: str, **options: bool) -> str:
    """``done``, or the code or reason of the failure."""
    with toolkit_for(root) as toolkit:
        try:
            toolkit.tools.apply_patch(patch=patch, **options)
        except ToolFailed as failure:
            return str(failure.reason)
        except ToolkitError as error:
            return error.code
    return "done"
