"""``manifest.json``: what a generated package was made from. The next run and packages that include it read it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.package.rows import Row
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError

NAME: Final = "manifest.json"
FORM: Final = 2
"""Version of the generated code. Raise it when the output for an unchanged spec changes; ``tests/codegen/test_form.py``
tells when. A manifest of another form is never reused."""
_MADE_BY: Final = "typed-toolkit"
_SEAL: Final = "digest"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Digests of everything read and written, and the rows of the package's own tools."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    rows: tuple[Row, ...]

    def text(self, settings: Settings) -> str:
        data = {
            "generator": _MADE_BY,
            "form": FORM,
            "package": settings.package,
            "class": settings.class_name,
            "inputs": dict(sorted(self.inputs.items())),
            "outputs": dict(sorted(self.outputs.items())),
            "tools": [row.as_json() for row in self.rows],
        }
        return _sealed(data)


def _sealed(data: dict[str, Any]) -> str:
    """The text of a manifest, with a digest of itself: an edit by hand is seen, down to the last blank."""
    seal = digest(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return json.dumps({**data, _SEAL: seal}, indent=1, ensure_ascii=False) + "\n"


def is_our_manifest(text: str) -> bool:
    """Whether a manifest says that we made it, however damaged it may be."""
    return re.search(rf'"generator"\s*:\s*"{_MADE_BY}"', text) is not None


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None if there is none that we can use, whatever is wrong with it."""
    try:
        text = (folder / NAME).read_bytes().decode()
        data: dict[str, Any] = json.loads(text)
        if (data["generator"], data["form"]) != (_MADE_BY, FORM) or text != _sealed(
            {k: v for k, v in data.items() if k != _SEAL}
        ):
            return None
        rows = tuple(map(Row.from_json, data["tools"]))
        return Manifest(data["inputs"], data["outputs"], rows)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def included_rows(packages: Iterable[str]) -> list[Row]:
    """The rows of installed generated packages, whose models are imported and not copied."""
    rows: list[Row] = []
    for package in packages:
        folder = package_folder(package)
        manifest = read_manifest(folder) if folder is not None else None
        if manifest is None:
            raise GenerationError(
                f"'include' names {package!r}, which is no generated package that can be found here;"
                " is it installed, and as `toolkit generate` made it? @ pyproject.toml:/tool/toolkit/include"
            )
        rows += manifest.rows
    return rows


def package_folder(package: str) -> Path | None:
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return Path(places[0]) if places else None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
