"""A record in the user's cache folder: whether the generator that runs now wrote the package on disk.

Committed manifests hold nothing about the generator's sources, so a change in the generator does not change every package.
A run reuses what is on disk only if this record agrees; without a record it starts from scratch.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from toolkit.codegen.package.manifest import FORM, NAME, digest, package_folder
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError


def generator_fingerprint(settings: Settings) -> str:
    """A digest of everything besides the specs that decides the output: generators, settings, included packages."""
    here = Path(__file__).parents[1]
    parts = [digest(file.read_bytes()) for file in sorted(here.rglob("*.py"))]
    parts += [str(FORM), settings.package, settings.class_name, _generator_version()]
    parts += map(json.dumps, (settings.specs, settings.packs, settings.include, settings.functions))
    parts.append(json.dumps([asdict(item) for item in settings.imports]))
    for package in settings.include:
        folder = package_folder(package)
        parts.append(digest((folder / NAME).read_bytes()) if folder and (folder / NAME).is_file() else "")
    return digest("\0".join(parts).encode())


def is_recorded(settings: Settings, fingerprint: str) -> bool:
    """Whether the generator with this fingerprint wrote the package on disk."""
    file = _record_file(settings)
    if file is None:
        return False
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8") == _record_text(settings, fingerprint)
    return False


def record_package(settings: Settings, fingerprint: str) -> None:
    """Records that this generator wrote the package on disk. A cache that cannot be written costs only time."""
    file = _record_file(settings)
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f"{file.name}.{os.getpid()}")
        staged.write_text(_record_text(settings, fingerprint), encoding="utf-8")
        os.replace(staged, file)


def _record_text(settings: Settings, fingerprint: str) -> str:
    return f"{fingerprint} {digest((settings.output / NAME).read_bytes())}"


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
