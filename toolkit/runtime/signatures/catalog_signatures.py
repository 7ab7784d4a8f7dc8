"""The signatures of the tools of a catalog, each made at its first use."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Final

from toolkit.errors import GenerationError
from toolkit.guard.imports.finder import remembered_file
from toolkit.runtime.signatures.generated_tool import read_signature

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
    from toolkit.runtime.signatures.signature import ToolSignature


class CatalogSignatures:
    """Name -> signature, for the tools of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog: Final = catalog
        self._made: Final[dict[str, ToolSignature]] = {}

    def of(self, name: str) -> ToolSignature:
        """The signature of a tool of the catalog."""
        if name not in self._made:
            info = self._catalog.tools[name]
            self._made[name] = read_signature(self._catalog.definitions[name], _model_text(info))
        return self._made[name]


def _model_text(info: ToolInfo) -> str:
    """The text of the module with a tool's models."""
    package, _, module = info.module.rpartition(".models.")
    path = f"models/{module}.py"
    data = remembered_file(package, path) or pkgutil.get_data(package, path)
    if data is None:
        raise GenerationError(f"the package {package!r} has no source of {path!r}; run `toolkit generate`")
    return data.decode()
