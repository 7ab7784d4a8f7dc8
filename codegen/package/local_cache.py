"""What this machine remembers about a generated package: whether the generator that runs now made it.

Committed manifests say nothing about the generator's sources, so that a change of ours does not change every package. The
next run may reuse what is on disk only if the record in the user's cache folder agrees; without one it starts from scratch.
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
    """Everything besides the specs that decides the output: the generators, the settings, the included packages."""
    here = Path(__file__).parents[1]
    parts = [digest(file.read_bytes()) for file in sorted(here.rglob("*.py"))]
    parts += [str(FORM), settings.package, settings.class_name, _generator_version()]
    parts += map(json.dumps, (settings.specs, settings.packs, settings.include, settings.functions))
    parts.append(json.dumps([asdict(item) for item in settings.imports]))
    for package in settings.include:
        folder = package_folder(package)
        parts.append(digest((folder / NAME).read_bytes()) if folder and (folder / NAME).is_file() else "")
    return digest("\0".join(parts).encode())


def was_made_here(settings: Settings, fingerprint: str) -> bool:
    """Whether the package on disk is what the generator with this fingerprint wrote last."""
    file = _record_file(settings)
    if file is None:
        return False
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8") == _record(settings, fingerprint)
    return False


def remember(settings: Settings, fingerprint: str) -> None:
    """Records the package on disk as made by this generator; a cache that cannot be written costs only time."""
    file = _record_file(settings)
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f"{file.name}.{os.getpid()}")
        staged.write_text(_record(settings, fingerprint), encoding="utf-8")
        os.replace(staged, file)


def _record(settings: Settings, fingerprint: str) -> str:
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
