"""Writes a plan to the disk, or compares it with the disk.

New files are staged in a folder of the package and then renamed, in an order that keeps the package importable at every
moment: models before what imports them, the manifest last. Then surplus files are removed. A killed run leaves complete
files, and the next run finishes the work, because the manifest does not agree with them yet. One run writes at a time.
"""

from __future__ import annotations

import difflib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolkit.codegen.package.manifest import NAME, STAGING, is_ours, surplus_files
from toolkit.codegen.package.plan import PackagePlan
from toolkit.errors import GenerationError
from toolkit.schema.places import show_path

_MANY: Final = 20
"""From this number of files on, one `sync` of all disks is faster than an `fsync` for each file: a thousand take seconds."""
_ORDER: Final = (
    "models/",
    "names.py",
    "unions.py",
    "signatures.py",
    "context.py",
    "catalog.py",
    "bind.py",
    "imported.py",
    "facade.py",
    "async_facade.py",
    "_exports.py",
)


def write(plan: PackagePlan) -> list[str]:
    """Writes the planned files and removes surplus ones; returns the paths that changed."""
    folder = plan.folder
    for path in _list_changed(plan):
        _refuse_foreign_file(folder, path)
    try:
        # The folder may be a link to the place where it is created, as in our own source tree.
        folder.resolve().mkdir(parents=True, exist_ok=True)
        with _alone_in(folder):
            changed, surplus = _list_changed(plan), _list_surplus(plan)
            if changed:
                _write_files(plan, changed)
            for path in surplus:
                _remove(folder / path)
    except OSError as error:
        raise GenerationError(f"{folder.name}: the package could not be written: {error.strerror or error}") from error
    return sorted([*changed, *surplus])


def _list_changed(plan: PackagePlan) -> list[str]:
    return [path for path, text in plan.files.items() if _read_current(plan.folder / path) != text.encode()]


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Waits until no other run writes this package. The lock ends with its process, however the process ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write_files(plan: PackagePlan, changed: list[str]) -> None:
    folder = plan.folder
    staging = folder / STAGING
    _remove(staging)
    try:
        for place in {Path(path).parent for path in changed}:
            (staging / place).mkdir(parents=True, exist_ok=True)
            (folder / place).mkdir(parents=True, exist_ok=True)
        _stage(staging, {path: plan.files[path] for path in changed})
        for path in sorted(changed, key=_rename_position):
            os.replace(os.path.join(staging, path), os.path.join(folder, path))
    finally:
        _remove(staging)


def compare(plan: PackagePlan) -> str:
    """The difference between plan and disk as a readable diff; empty if there is none."""
    parts = [f"unexpected file: {plan.folder.name}/{path}\n" for path in _list_surplus(plan)]
    for path, text in plan.files.items():
        there = _read_current(plan.folder / path)
        if there is None:
            parts.append(f"missing file: {plan.folder.name}/{path}\n")
        elif there != text.encode():
            old, new = there.decode("utf-8", "replace").splitlines(), text.splitlines()
            name = f"{plan.folder.name}/{path}"
            lines = list(difflib.unified_diff(old, new, f"{name} (on disk)", f"{name} (generated)", lineterm="", n=2))
            parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def _list_surplus(plan: PackagePlan) -> list[str]:
    return surplus_files(str(plan.folder), plan.files.keys() | plan.kept.keys())


def _refuse_foreign_file(folder: Path, path: str) -> None:
    """Stops before anything is written if a planned path is taken by something we did not write."""
    file = folder / path
    for above in (folder, *(folder / part for part in Path(path).parents)):
        if above.exists() and not above.is_dir():
            raise _taken_error(above, "a folder is needed here, but this is a file")
    if file.is_dir():
        raise _taken_error(file, "a generated file must go here, but this is a folder")
    if file.is_file() and file.stat().st_size and not is_ours(str(file)):
        raise _taken_error(file, "a generated file must go here, but this one was not generated")


def _taken_error(file: Path, why: str) -> GenerationError:
    return GenerationError(f"{show_path(file)}: {why}; move it, or choose another 'package'")


def _read_current(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _stage(staging: Path, files: Mapping[str, str]) -> None:
    """Writes the files and waits until the disk has them: no rename may become durable before its file."""
    at_once = len(files) >= _MANY and sys.platform == "linux"  # elsewhere `sync` does not wait
    for path, text in files.items():
        with open(os.path.join(staging, path), "wb") as stream:
            stream.write(text.encode())
            if not at_once:
                stream.flush()
                os.fsync(stream.fileno())
    if at_once:
        os.sync()


def _remove(place: Path) -> None:
    """Removes a file, a link (not its target) or a whole folder, if it exists."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _rename_position(path: str) -> tuple[int, str]:
    """The position of a file in the order of renames; ``__init__.py`` and the manifest are last."""
    if path == NAME:
        return len(_ORDER) + 1, path
    for index, start in enumerate(_ORDER):
        if path.startswith(start):
            return index, path
    return len(_ORDER), path
