"""The file that an import names in the settings."""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SetupError
from toolkit.spec.problems import shown


def named_file(settings: ImportSettings, root: Path) -> Path:
    """Where the file of ``openapi`` or ``tools`` is, seen from the project's folder; that there is none is a mistake."""
    name = settings.openapi or settings.tools
    file = root / name
    if not os.path.lexists(file):
        raise SetupError(f"there is no file {shown(name)} @ {settings.pointer}/{settings.kind}")
    return file
