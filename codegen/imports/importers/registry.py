"""The importer of each kind. Each is loaded when it is needed, because some load large libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

from toolkit.codegen.imports.importers.result import ImportResult
from toolkit.codegen.imports.settings import ImportKind, ImportSettings

Importer: TypeAlias = Callable[[ImportSettings, Path], ImportResult]
"""Takes the settings of one import and the project's folder, returns the tools. Raises ``SetupError``."""

OpenUrl: TypeAlias = Callable[[str], object]
"""Shows an address to the person, or opens it in a browser, and returns at once."""

IMPORTERS: Final[Mapping[ImportKind, str]] = {
    "mcp": "toolkit.codegen.imports.mcp:import_mcp",
    "openapi": "toolkit.codegen.imports.openapi:import_openapi",
    "tools": "toolkit.codegen.imports.provider_json:import_provider_json",
    "functions": "toolkit.codegen.imports.importers.functions:import_functions",
    "models": "toolkit.codegen.imports.importers.models:import_models",
}


def load_importer(kind: ImportKind, open_url: OpenUrl | None = None) -> Importer:
    """The importer of this kind; ``open_url`` is for servers that need a login."""
    module, _, name = IMPORTERS[kind].partition(":")
    found: Callable[..., ImportResult] = getattr(import_module(module), name)
    return partial(found, open_url=open_url) if kind == "mcp" else found
