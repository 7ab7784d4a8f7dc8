"""A plan onto the disk, or compared with it: the same plan either way.

Files are staged beside their places first and renamed into them last, in an order that keeps the package importable at
every moment: models before what refers to them, the manifest at the end, surplus files after that. A run that is killed
leaves files whole, and the next run finishes it, because the manifest does not agree with them yet.
"""

from __future__ import annotations

import difflib
import os
import shutil
from pathlib import Path
from typing import Final

from codegen.manifest import NAME, read_manifest
from codegen.plan import MARK, Plan
from toolkit.errors import GenerationError

_STAGING: Final = ".toolkit-staging"
_ORDER: Final = (
    "models/",
    "names.py",
    "unions.py",
    "context.py",
    "catalog.py",
    "bind.py",
    "facade.py",
    "async_facade.py",
)


def write(plan: Plan) -> list[str]:
    """Makes the disk as planned; gives the paths that changed, removed ones included."""
    folder = plan.folder
    changed = [path for path, text in plan.files.items() if _current(folder / path) != text.encode()]
    for path in changed:
        _refuse_foreign(folder, path)
    surplus = surplus_files(plan)
    if not changed and not surplus:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    staging = folder / _STAGING
    shutil.rmtree(staging, ignore_errors=True)
    try:
        for path in changed:
            _stage(staging / path, plan.files[path])
        for path in sorted(changed, key=_place):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / path, folder / path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    for path in surplus:
        (folder / path).unlink()
    return sorted([*changed, *surplus])


def compare(plan: Plan) -> str:
    """What differs between plan and disk, as a diff to be read; empty if nothing does."""
    parts = [f"surplus file: {plan.folder.name}/{path}\n" for path in surplus_files(plan)]
    for path, text in plan.files.items():
        there = _current(plan.folder / path)
        if there is None:
            parts.append(f"missing file: {plan.folder.name}/{path}\n")
        elif there != text.encode():
            old, new = there.decode("utf-8", "replace").splitlines(), text.splitlines()
            name = f"{plan.folder.name}/{path}"
            lines = list(difflib.unified_diff(old, new, f"{name} (on disk)", f"{name} (generated)", lineterm="", n=2))
            parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def surplus_files(plan: Plan) -> list[str]:
    """Files of ours that the plan no longer has: those the last manifest names, and those that carry our mark."""
    known = read_manifest(plan.folder)
    listed = set(known.outputs) if known is not None else set()
    found = []
    for file in sorted(plan.folder.rglob("*")):
        path = file.relative_to(plan.folder).as_posix()
        if path in plan.files or not file.is_file() or file.is_symlink() or path.startswith(_STAGING):
            continue
        if path in listed and _is_ours(file) or file.suffix == ".py" and _is_ours(file):
            found.append(path)
    return found


def _refuse_foreign(folder: Path, path: str) -> None:
    file = folder / path
    if path not in (NAME, "py.typed") and file.is_file() and file.stat().st_size and not _is_ours(file):
        raise GenerationError(
            f"{file.name} stands where a generated file must go, and it is not ours; move it,"
            f" or set another 'package' @ {folder.name}/{path}"
        )


def _is_ours(file: Path) -> bool:
    with file.open("rb") as stream:
        return MARK.encode() in stream.read(400)


def _current(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stage(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _place(path: str) -> tuple[int, str]:
    """Where in the order of renames a file comes; the package's door and the manifest are last."""
    if path == NAME:
        return len(_ORDER) + 1, path
    for index, start in enumerate(_ORDER):
        if path.startswith(start):
            return index, path
    return len(_ORDER), path
