"""A run's inputs, as digests; and whether the package on disk is what the run would write.

A run with nothing to do needs only this module, so it imports little. Committed manifests hold no digests: a change in the
generator does not change every package, and branches merge. Instead, a record in the user's cache folder says what the last
run for a package read and wrote. A run reuses what is on disk only if that record agrees; without one, it starts anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit.codegen.package.manifest import FORM, NAME, digest, package_folder, parse_rows, surplus_files
from toolkit.codegen.settings import Settings
from toolkit.errors import SetupError
from toolkit.schema.spec_files import spec_files

if TYPE_CHECKING:
    from toolkit.codegen.package.rows import Row
    from toolkit.schema.spec import ToolSpec


_RECORDS: Final = "generated"
TEXTS: Final = "classes"
"""What datamodel-code-generator wrote: see ``classes.keep_texts``."""


def generator_fingerprint(settings: Settings) -> str:
    """A digest of everything besides the specs that decides the output: generators, settings, included packages."""
    here = Path(__file__).parents[1]
    parts = [digest(file.read_bytes()) for file in sorted(here.rglob("*.py"))]
    parts += [str(FORM), str(settings.rich_formats), settings.package, settings.class_name, generator_version()]
    parts += map(json.dumps, (settings.specs, settings.packs, settings.include, settings.functions))
    parts.append(json.dumps([asdict(item) for item in settings.imports]))
    parts.append(json.dumps([asdict(profile) for profile in settings.profiles]))
    for package in settings.include:
        folder = package_folder(package)
        parts.append(digest((folder / NAME).read_bytes()) if folder and (folder / NAME).is_file() else "")
    return digest("\0".join(parts).encode())


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """What the generator that runs now did last: the manifest on disk, and the digests of what it read and wrote."""

    manifest: bytes
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    when: int
    """The time of the record, as file systems tell it in nanoseconds."""

    def read_rows(self) -> Sequence[Row]:
        """Only when they are needed: most runs find nothing to do."""
        return parse_rows(self.manifest) or ()


def read_previous_run(settings: Settings, fingerprint: str | None) -> PreviousRun | None:
    """The last run for this package, if the generator with this fingerprint did it and its manifest is unchanged.

    None stands for any generator.
    """
    file = cache_file(settings, _RECORDS)
    if file is None:
        return None
    try:
        record = json.loads(file.read_bytes())
        inputs, outputs = dict(record["inputs"]), dict(record["outputs"])
        manifest = (settings.output / NAME).read_bytes()
        if fingerprint not in (None, record["generator"]) or outputs[NAME] != digest(manifest):
            return None
        when = file.stat().st_mtime_ns
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return PreviousRun(manifest, inputs, outputs, when)


def record_run(settings: Settings, fingerprint: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Records the digests of what this run read and of all files now. A cache that cannot be written costs only time."""
    record = {"generator": fingerprint, "inputs": dict(inputs), "outputs": dict(outputs)}
    replace_cache_file(cache_file(settings, _RECORDS), json.dumps(record))


def cache_file(settings: Settings, kind: str) -> Path | None:
    """Where something about a package is kept in the user's cache folder, if there is one."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "typed-toolkit" / kind / digest(os.fsencode(settings.output.resolve()))


def replace_cache_file(file: Path | None, text: str) -> None:
    """Replaces the file atomically, even if two runs write at once."""
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f"{file.name}.{os.getpid()}")
        staged.write_text(text, encoding="utf-8")
        os.replace(staged, file)


def move_cache_files(settings: Settings, root: Path) -> None:
    """For a project whose folder is ``root`` now: what is known about its package stays known."""
    for kind in (_RECORDS, TEXTS):
        old, new = cache_file(settings, kind), cache_file(replace(settings, root=root), kind)
        if old is not None and new is not None:
            with suppress(OSError):
                os.replace(old, new)


def generator_version() -> str:
    """The version of datamodel-code-generator, without importing it or ``importlib.metadata``, which takes longer than the
    rest of a run with nothing to do."""
    found = find_spec("datamodel_code_generator")
    if found is None or found.origin is None:
        raise SetupError("generation needs datamodel-code-generator: pip install 'typed-toolkit[codegen]'")
    place = Path(found.origin).parents[1]
    installed = [name for name in os.listdir(place) if name.startswith("datamodel_code_generator-")]
    if len(installed) == 1:
        return installed[0]
    from importlib.metadata import version

    return version("datamodel-code-generator")


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
        from toolkit.codegen.imports.python_modules import read_functions

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
    """Whether neither inputs nor outputs changed since the last run, and no generated file is left over."""
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
