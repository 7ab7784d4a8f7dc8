"""Which function reads which kind of import. Each is imported when it is needed: some bring libraries with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.settings import ImportKind, ImportSettings

Importer: TypeAlias = Callable[[ImportSettings, Path], Imported]
"""From the settings of one import and the project's folder to the tools; ``SetupError`` says what is in the way."""

IMPORTERS: Final[Mapping[ImportKind, str]] = {
    "mcp": "toolkit.codegen.imports.importers.mcp:import_mcp",
    "openapi": "toolkit.codegen.imports.importers.openapi.importer:import_openapi",
    "tools": "toolkit.codegen.imports.importers.provider_json:import_provider_json",
    "functions": "toolkit.codegen.imports.importers.functions:import_functions",
    "models": "toolkit.codegen.imports.importers.models:import_models",
}


def importer_of(kind: ImportKind) -> Importer:
    module, _, name = IMPORTERS[kind].partition(":")
    found: Importer = getattr(import_module(module), name)
    return found
