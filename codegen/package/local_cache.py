"""A record in the user's cache folder: what the last run for a package read and wrote.

Committed manifests hold no digests, so a change in the generator does not change every package, and branches merge. A run
reuses what is on disk only if this record agrees; without a record it starts from scratch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from toolkit.codegen.package.manifest import FORM, NAME, digest, package_folder, read_rows
from toolkit.codegen.package.rows import Row
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError


def generator_fingerprint(settings: Settings) -> str:
    """A digest of everything besides the specs that decides the output: generators, settings, included packages."""
    here = Path(__file__).parents[1]
    parts = [digest(file.read_bytes()) for file in sorted(here.rglob("*.py"))]
    parts += [str(FORM), str(settings.rich_formats), settings.package, settings.class_name, _generator_version()]
    parts += map(json.dumps, (settings.specs, settings.packs, settings.include, settings.functions))
    parts.append(json.dumps([asdict(item) for item in settings.imports]))
    parts.append(json.dumps([asdict(profile) for profile in settings.profiles]))
    for package in settings.include:
        folder = package_folder(package)
        parts.append(digest((folder / NAME).read_bytes()) if folder and (folder / NAME).is_file() else "")
    return digest("\0".join(parts).encode())


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """What the generator that runs now did last: the rows on disk, and the digests of what it read and wrote."""

    rows: Sequence[Row]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def read_previous_run(settings: Settings, fingerprint: str) -> PreviousRun | None:
    """The last run for this package, if the generator with this fingerprint did it and its manifest is unchanged."""
    file = _record_file(settings)
    if file is None:
        return None
    try:
        record = json.loads(file.read_bytes())
        inputs, outputs = dict(record["inputs"]), dict(record["outputs"])
        manifest = (settings.output / NAME).read_bytes()
        if (record["generator"], outputs[NAME]) != (fingerprint, digest(manifest)):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    rows = read_rows(settings.output)
    return None if rows is None else PreviousRun(rows, inputs, outputs)


def record_run(settings: Settings, fingerprint: str, inputs: Mapping[str, str], files: Mapping[str, str]) -> None:
    """Records what this run read and wrote. A cache that cannot be written costs only time."""
    file = _record_file(settings)
    if file is None:
        return
    outputs = {path: digest(text.encode()) for path, text in files.items()}
    record = {"generator": fingerprint, "inputs": dict(inputs), "outputs": outputs}
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f"{file.name}.{os.getpid()}")
        staged.write_text(json.dumps(record), encoding="utf-8")
        os.replace(staged, file)


def _record_file(settings: Settings) -> Path | None:
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "typed-toolkit" / "generated" / digest(os.fsencode(settings.output.resolve()))


def _generator_version() -> str:
    try:
        return version("datamodel-code-generator")
    except PackageNotFoundError:
        raise GenerationError(
            "generation needs datamodel-code-generator: pip install 'typed-toolkit[codegen]'"
        ) from None
