"""The file that an import names in the settings."""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SetupError
from toolkit.schema.problems import quote


def find_source_file(settings: ImportSettings, root: Path) -> Path:
    """The file that ``openapi`` or ``tools`` names, relative to the project's folder; ``SetupError`` if there is none."""
    name = settings.openapi or settings.tools
    file = root / name
    if not os.path.lexists(file):
        message = f"the file {quote(name)} does not exist; give a path relative to pyproject.toml"
        raise SetupError([settings.finding(message, settings.kind)])
    return file
