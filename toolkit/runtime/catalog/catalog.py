"""The catalog of a generated package: one row per tool, and where its models and schemas are."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel

from toolkit.errors import GenerationError
from toolkit.guard.late_imports import remembered_file
from toolkit.guard.policy.hints import HINTS, Hint, effective_hints
from toolkit.runtime.arguments import Reader
from toolkit.runtime.output.message import NewMessage, ToolMessage

if TYPE_CHECKING:
    from toolkit.guard.permission import Permission
    from toolkit.runtime.catalog.pack import CodeTool
    from toolkit.runtime.discovery import ToolIndex
    from toolkit.runtime.functions.outputs import FunctionOutput
    from toolkit.runtime.signatures.catalog_signatures import CatalogSignatures
    from toolkit.wire.json_types import JsonObject

_MANIFEST: Final = "manifest.json"


class ToolInfo(NamedTuple):
    """One row of a catalog: what the call path needs before any model is imported."""

    name: str
    attribute: str
    module: str
    prefix: str
    required: tuple[Permission, ...] = ()
    optional: tuple[Permission, ...] = ()
    resources: tuple[tuple[str, str], ...] = ()
    """What a call touches, from the spec's ``x-resource`` marks: field of the input, and kind."""
    parallel: bool = False
    blocking: bool = True
    function: str | None = None
    """``module:function`` if the tool was imported from a function, which then runs it."""
    own_output: bool = False
    """Whether its outputs are what that function returns, not generated models."""
    must_be_named: bool = False
    """Whether only a policy that names it allows it."""


class Catalog:
    """The tools of a generated package, in order. Models and schemas are loaded on first use."""

    def __init__(self, package: str, tools: Iterable[ToolInfo]) -> None:
        self.package: Final = package
        self.tools: Final[dict[str, ToolInfo]] = {tool.name: tool for tool in tools}

    def model(self, info: ToolInfo, kind: str) -> type[BaseModel]:
        """The generated ``<prefix>Input`` or ``<prefix>Output`` of a tool; not a model if it has ``own_output``."""
        module = importlib.import_module(info.module)
        found: type[BaseModel] = getattr(module, f"{info.prefix}{kind}")
        return found

    def reader(self, info: ToolInfo, kind: str) -> Reader:
        """Reads the arguments (``Input``) or the outputs (``Output``) of a tool."""
        output = self.function_output(info) if kind == "Output" else None
        if output is None:
            return Reader(self.model(info, kind))
        from toolkit.runtime.functions.outputs import OutputReader

        return OutputReader(output)

    def message(self, info: ToolInfo) -> NewMessage:
        """The constructor of a tool's messages."""
        output = self.function_output(info)
        return ToolMessage if output is None else output.message

    def function_output(self, info: ToolInfo) -> FunctionOutput | None:
        """The return type of a tool whose outputs are not generated models."""
        if not info.own_output:
            return None
        from toolkit.runtime.functions.outputs import FunctionOutput

        return FunctionOutput(self.model(info, "Output"), f"{info.function}")

    def function(self, name: str) -> CodeTool | None:
        """The code-first tool that was added to the catalog under this name."""
        return None

    @property
    def packages(self) -> list[str]:
        """The generated packages that its tools are from."""
        found = dict.fromkeys(tool.module.rpartition(".models.")[0] for tool in self.tools.values())
        return [package for package in found if package]

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> title, description and schemas of each tool, from the manifests of their packages."""
        found = {row["name"]: row for package in self.packages for row in _manifest_rows(package)}
        if missing := [name for name in self.tools if name not in found]:
            package = self.tools[missing[0]].module.rpartition(".models.")[0]
            raise GenerationError(
                f"the package {package!r} is incomplete: its {_MANIFEST} does not have the tool {missing[0]!r}, as after a "
                "`toolkit generate` that was killed; run `toolkit generate`"
            )
        return {name: found[name] for name in self.tools}

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Alias -> name, for tools whose names providers would refuse."""
        from toolkit.wire.aliases import alias, is_plain

        return {alias(name): name for name in self.tools if not is_plain(name)}

    @cached_property
    def signatures(self) -> CatalogSignatures:
        """The signatures of the tools, as Python text."""
        from toolkit.runtime.signatures.catalog_signatures import CatalogSignatures

        return CatalogSignatures(self)

    @cached_property
    def word_index(self) -> ToolIndex:
        """The words of all tools, for search."""
        from toolkit.runtime.discovery import ToolIndex

        return ToolIndex(self.definitions)

    def input_schema(self, name: str) -> JsonObject:
        """The JSON Schema of a tool's arguments, as in its spec."""
        schema: JsonObject = self.definitions[name]["inputSchema"]
        return schema

    def annotations(self, name: str) -> Mapping[str, Any]:
        """What a tool declares about itself, as in MCP."""
        return self.definitions[name].get("annotations") or {}

    def hints(self, name: str) -> Collection[Hint]:
        """The hints that hold for a tool, from the manifest; no model is imported."""
        info = self.tools.get(name)
        return HINTS if info is None else effective_hints(self.annotations(name), (*info.required, *info.optional))


def _manifest_rows(package: str) -> list[dict[str, Any]]:
    import json
    import pkgutil

    try:
        data = remembered_file(package, _MANIFEST) or pkgutil.get_data(package, _MANIFEST)
    except FileNotFoundError:
        data = None
    if data is None:
        raise GenerationError(f"the package {package!r} has no manifest.json; run `toolkit generate`")
    rows: list[dict[str, Any]] = json.loads(data)["tools"]
    return rows
