"""Joins packs to a catalog: handlers for its tools, and code-first tools that extend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolkit.errors import SetupError, nearest
from toolkit.inject.plan import name_of
from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
from toolkit.runtime.catalog.handler_parts import HandlerParts, find_parts
from toolkit.runtime.catalog.lazy_handler import Handlers, LazyHandler
from toolkit.runtime.catalog.pack import CodeTool, Pack

if TYPE_CHECKING:
    from toolkit.runtime.arguments import Reader
    from toolkit.runtime.functions.define import FunctionTool
    from toolkit.runtime.functions.outputs import FunctionOutput
    from toolkit.wire.json_types import JsonObject

Found: TypeAlias = dict[str, HandlerParts[..., Any] | LazyHandler]
_INCLUDE: Final = (
    "; if it is a tool of another package, add that package to 'include' in your settings"
    " (the built-in tools are in toolkit.generated) and run `toolkit generate`"
)
Ready: TypeAlias = "Callable[[CodeTool], FunctionTool[..., Any]]"


def join_packs(catalog: Catalog, packs: Iterable[Pack], ready: Ready) -> tuple[Catalog, Handlers]:
    """One handler per tool, and the catalog with the code-first tools it did not have.

    Refused: two packs with one tool, a handler for a tool that the catalog does not have, two tools of one name.
    ``ready`` loads a lazy tool.
    """
    handlers: Found = {}
    owners: dict[str, str] = {}
    functions: dict[str, FunctionTool[..., Any]] = {}
    seen: set[int] = set()
    for pack in packs:
        for name, handler in pack.handlers.items():
            if name not in catalog.tools:
                meant = nearest(name, catalog.tools)
                raise SetupError(
                    f"a pack handles {name!r}, which is not a tool of {catalog.package}{f'.{meant}' if meant else _INCLUDE}"
                )
            if isinstance(handler, LazyHandler):
                _claim(owners, name, f"{handler.module}.run")
                handlers[name] = handler
            else:
                handlers[name] = parts = find_parts(handler)
                _claim(owners, name, name_of(parts.run))
        for tool in pack.tools:
            if id(tool) not in seen:
                seen.add(id(tool))
                _join_tool(catalog, ready(tool), handlers, owners, functions)
    return (ExtendedCatalog(catalog, functions) if functions else catalog), Handlers(handlers)


def _join_tool(
    catalog: Catalog,
    tool: FunctionTool[..., Any],
    handlers: Found,
    owners: dict[str, str],
    functions: dict[str, FunctionTool[..., Any]],
) -> None:
    from toolkit.runtime.functions.handler import make_generated_handler, make_handler

    info = catalog.tools.get(tool.name)
    if info is not None and info.function != tool.origin:
        package, source = info.module.rpartition(".models.")[0], catalog.definitions[tool.name]["source"]
        raise SetupError(
            f"two tools are named {tool.name!r}: one of {package} (from {source}) and {tool.owner}; rename the function "
            f"with name=..., or exclude it from its pack with `without`"
        )
    _claim(owners, tool.name, tool.owner)
    if info is not None:
        handlers[tool.name] = make_generated_handler(tool, own_output=info.own_output)
    else:
        handlers[tool.name] = make_handler(tool)
    if info is None or info.own_output:
        functions[tool.name] = tool


def _claim(owners: dict[str, str], name: str, owner: str) -> None:
    if name in owners:
        raise SetupError(f"two packs handle {name!r}: {owners[name]} and {owner}; drop one with `without`")
    owners[name] = owner


class ExtendedCatalog(Catalog):
    """The catalog of a generated package and code-first tools, in the order of their names.

    A tool that the package has too is its own: only its outputs are those of the function.
    """

    def __init__(self, base: Catalog, functions: Mapping[str, FunctionTool[..., Any]]) -> None:
        added = {name: tool for name, tool in functions.items() if name not in base.tools}
        tools = [*base.tools.values(), *(tool.info for tool in added.values())]
        super().__init__(base.package, sorted(tools, key=lambda info: info.name))
        self._base = base
        self._functions = functions
        self._added = added

    def reader(self, info: ToolInfo, kind: str) -> Reader:
        tool = self._added.get(info.name)
        return super().reader(info, kind) if tool is None or kind == "Output" else tool.arguments.reader

    def function_output(self, info: ToolInfo) -> FunctionOutput | None:
        tool = self._functions.get(info.name)
        return self._base.function_output(info) if tool is None else tool.output

    def function(self, name: str) -> CodeTool | None:
        return self._added.get(name)

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        own = {
            tool.name: {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "longDescription": tool.long_description,
                "inputSchema": tool.arguments.schema,
                "outputSchema": tool.output.schema,
            }
            for tool in self._added.values()
        }
        return {**self._base.definitions, **own}

    def input_schema(self, name: str) -> JsonObject:
        tool = self._added.get(name)
        return self._base.input_schema(name) if tool is None else tool.arguments.schema
