"""The signatures of the tools of a catalog, each made at its first use."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from toolkit.errors import GenerationError
from toolkit.guard.late_imports import remembered_file
from toolkit.runtime.signatures.generated_tool import read_signature

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
    from toolkit.runtime.functions.define import FunctionTool
    from toolkit.runtime.signatures.signature import ToolSignature


class CatalogSignatures:
    """Name -> signature, for the tools of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog: Final = catalog
        self._made: Final[dict[str, ToolSignature]] = {}

    def of(self, name: str) -> ToolSignature:
        """The signature of a tool of the catalog."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> ToolSignature:
        function = self._catalog.function(name)
        if function is not None:
            from toolkit.runtime.signatures.function_tool import function_signature

            return function_signature(cast("FunctionTool[..., Any]", function))
        info = self._catalog.tools[name]
        signature = read_signature(self._catalog.definitions[name], _model_text(info))
        if not info.own_output:
            return signature
        from toolkit.runtime.signatures.python_types import TypeTexts

        outputs = TypeTexts(info.prefix)
        output = outputs.write(self._catalog.model(info, "Output"))
        return replace(signature, output=output, output_classes=outputs.lines)


def _model_text(info: ToolInfo) -> str:
    """The text of the module with a tool's models."""
    package, _, module = info.module.rpartition(".models.")
    path = f"models/{module}.py"
    data = remembered_file(package, path) or pkgutil.get_data(package, path)
    if data is None:
        raise GenerationError(f"the package {package!r} has no source of {path!r}; run `toolkit generate`")
    return data.decode()
