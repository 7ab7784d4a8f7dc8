"""A record in the user's cache folder: what the last run for a package read and wrote.

Committed manifests hold no digests, so a change in the generator does not change every package, and branches merge. A run
reuses what is on disk only if this record agrees; without a record it starts from scratch.
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

from toolkit.codegen.package.manifest import FORM, NAME, digest, package_folder, parse_rows
from toolkit.codegen.settings import Settings
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.codegen.package.rows import Row

_RECORDS: Final = "generated"
TEXTS: Final = "classes"
"""What ``classes/kept_texts`` keeps."""


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
    """The old text or the new one is there at every moment, also if two runs write at once."""
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
