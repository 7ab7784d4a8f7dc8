"""What a run reads, as digests, and whether the package on disk is what it would write.

A run with nothing to do needs this module and no more, so it imports little.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from toolkit.codegen.package.local_cache import PreviousRun, read_previous_run
from toolkit.codegen.package.manifest import digest
from toolkit.codegen.package.surplus import surplus_files
from toolkit.codegen.settings import Settings
from toolkit.errors import SetupError
from toolkit.schema.spec_files import spec_files

if TYPE_CHECKING:
    from toolkit.codegen.package.rows import Row
    from toolkit.schema.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run reads, with digests, and the previous run's result if it can be reused."""

    files: dict[str, str]
    """The paths of the spec files, in the order of their tools."""
    functions: dict[str, list[ToolSpec]]
    """Modules of code-first tools, and the specs read from each."""
    digests: dict[str, str]
    """Of the spec files, of the description files an earlier run read, of the functions' specs and of policy files."""
    previous: PreviousRun | None
    """The package on disk, if the generator that runs now wrote it on this machine."""

    @property
    def sources(self) -> list[str]:
        """Every file and module that holds tools, in order."""
        return [*self.files, *self.functions]

    def reusable(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """Those of the previous rows whose sources did not change."""
        if self.previous is None:
            return {}
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(row.source, []).append(row)
        same = {source for source, value in self.digests.items() if self.previous.inputs.get(source) == value}
        return {
            source: rows
            for source, rows in found.items()
            if source in same and all(row.descriptionSource is None or row.descriptionSource in same for row in rows)
        }


def read_inputs(settings: Settings, previous: PreviousRun | None = None) -> Inputs:
    """The digests of spec files, of description files that an earlier run used, of functions and of policy files."""
    files = {source: path for path, source in spec_files(settings.list_spec_paths(), base=settings.root)}
    root = str(settings.root)
    # What an earlier run read besides: description files.
    others = (source for source in (previous.inputs if previous else ()) if source not in files)
    read = files | {source: path for source in others if os.path.isfile(path := os.path.join(root, source))}
    read |= policy_files(settings)
    # A link is not read here; the loader refuses it and names it.
    digests = {source: digest(b"" if os.path.islink(path) else read_file(path)) for source, path in read.items()}
    functions: dict[str, list[ToolSpec]] = {}
    if settings.functions:
        from toolkit.codegen.imports.importers.functions import read_functions

        functions = read_functions(settings)
    # Digests of the specs, not of the modules' files: the types of a function may be defined elsewhere.
    digests |= {
        source: digest(json.dumps([asdict(spec) for spec in specs]).encode()) for source, specs in functions.items()
    }
    return Inputs(files, functions, digests, previous)


def policy_files(settings: Settings) -> dict[str, str]:
    """The policy files of profiles; one that is missing is reported when the profiles are planned."""
    files = {profile.policy: str(settings.root / profile.policy) for profile in settings.profiles if profile.policy}
    return {source: path for source, path in files.items() if os.path.isfile(path)}


def is_current(settings: Settings, inputs: Inputs) -> bool:
    """Whether neither inputs nor outputs changed since the last run, and no file of ours is left over."""
    previous = inputs.previous
    if previous is None or dict(previous.inputs) != inputs.digests:
        return False
    folder = str(settings.output)
    for path, value in previous.outputs.items():
        try:
            if digest(read_file(os.path.join(folder, path))) != value:
                return False
        except OSError:
            return False
    return not surplus_files(folder, previous.outputs)


def is_older_than_specs(settings: Settings) -> bool:
    """Whether a file that the last run on this machine read has changed since, or a spec file was added or removed.

    Fast, for a warning: only files with a newer date are read, modules with functions are not imported, and without a record
    of that run, or with another package on disk, the answer is no.
    """
    previous = read_previous_run(settings, None)
    if previous is None:
        return False
    try:
        files = {source: path for path, source in spec_files(settings.list_spec_paths(), base=settings.root)}
    except SetupError:
        return False
    return not files.keys() <= previous.inputs.keys() or any(
        _has_changed(files.get(source) or os.path.join(str(settings.root), source), value, previous.when)
        for source, value in previous.inputs.items()
        if source not in settings.functions
    )


def _has_changed(path: str, value: str, since: int) -> bool:
    try:
        return os.stat(path).st_mtime_ns >= since and digest(read_file(path)) != value
    except OSError:
        return True


def read_file(path: str) -> bytes:
    """The bytes of a file; nothing of a pipe, which could keep a run waiting for ever."""
    with open(path, "rb", buffering=0, opener=_open_without_waiting) as file:
        return file.readall() or b""


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
