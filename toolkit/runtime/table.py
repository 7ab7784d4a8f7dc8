"""The catalog of a generated package, packs of handlers, and what the road needs to know of each tool."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, Final, TypeAlias, TypeVar

from pydantic import BaseModel

from toolkit.errors import GenerationError, SetupError, nearest
from toolkit.guard.fs import SandboxFS
from toolkit.guard.permission import Permission
from toolkit.runtime.context import ToolContext
from toolkit.runtime.reader import Reader
from toolkit.wire.json_types import JsonObject

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

Handler: TypeAlias = Callable[Concatenate[InputT, ToolContext, ...], OutputT | Awaitable[OutputT]]
"""What runs a tool: validated arguments and the context in, the output out; sync or async."""


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One row of a catalog: what the road needs before any model is imported."""

    name: str
    attribute: str
    module: str
    prefix: str
    required: tuple[Permission, ...] = ()
    optional: tuple[Permission, ...] = ()
    resources: tuple[tuple[str, str], ...] = ()
    """What a call touches, by the spec's ``x-resource``: the input's field, and the kind."""
    parallel: bool = False
    blocking: bool = True


class Catalog:
    """The tools of a generated package, in order. Models and schemas are loaded when something asks for them."""

    def __init__(self, package: str, tools: Iterable[ToolInfo]) -> None:
        self.package: Final = package
        self.tools: Final[dict[str, ToolInfo]] = {tool.name: tool for tool in tools}

    def model(self, info: ToolInfo, kind: str) -> type[BaseModel]:
        """The generated ``<prefix>Input`` or ``<prefix>Output`` of a tool."""
        module = importlib.import_module(info.module)
        found: type[BaseModel] = getattr(module, f"{info.prefix}{kind}")
        return found

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> title, description and schemas of each tool, from the manifests of the packages they come from."""
        packages = dict.fromkeys(tool.module.rpartition(".models.")[0] for tool in self.tools.values())
        found = {row["name"]: row for package in packages for row in _manifest_rows(package)}
        return {name: found[name] for name in self.tools}

    def input_schema(self, name: str) -> JsonObject:
        """The JSON Schema of a tool's arguments, as its spec has it."""
        schema: JsonObject = self.definitions[name]["inputSchema"]
        return schema


def _manifest_rows(package: str) -> list[dict[str, Any]]:
    data = pkgutil.get_data(package, "manifest.json")
    if data is None:
        raise GenerationError(f"the package {package!r} has lost its manifest.json; run `toolkit generate`")
    rows: list[dict[str, Any]] = json.loads(data)["tools"]
    return rows


class Pack:
    """Handlers by tool name; made by a generated ``bind``, which checks that every one is there and fits.

    >>> Pack({"done": print}).without("done").handlers
    {}
    """

    def __init__(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        self.handlers: Final = dict(handlers)

    def without(self, *names: str) -> Pack:
        """The same pack less some tools, which then are no longer offered and fail as NO_HANDLER when called."""
        for name in names:
            if name not in self.handlers:
                raise SetupError(f"this pack has no handler for {name!r}.{nearest(name, self.handlers)}")
        return Pack({name: handler for name, handler in self.handlers.items() if name not in names})


@dataclass(slots=True)
class Tool:
    """One tool as a toolkit holds it: everything that can be decided before a call is decided here."""

    info: ToolInfo
    refusal: str | None
    """Why no call of it can pass, or None."""
    always_allowed: bool
    """Whether every call passes, so that nobody needs to look at what it touches."""
    handler: Callable[..., Any] | None
    granted: frozenset[Permission]
    fs: SandboxFS | None
    """The workspace's files, if its permissions grant them."""
    output_check: str
    input_schema: Callable[[], JsonObject] | None
    """Set where arguments may be repaired."""
    input: Reader
    output: Reader
    name: str = field(init=False)
    is_async: bool = field(init=False)
    render: Callable[[Any], str] | None = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.info.name
        self.is_async = self.handler is not None and _is_async(self.handler)
        self.render = beside(self.handler, "text")


def _is_async(handler: Callable[..., Any]) -> bool:
    # An object with an async __call__ is a handler, too.
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def beside(handler: Callable[..., Any] | None, name: str) -> Callable[..., Any] | None:
    """A function that a handler module exports beside its ``run``: ``text`` or ``preview``."""
    space = getattr(handler, "__globals__", {})
    found = space.get(name) if space.get("run") is handler else None
    return found if callable(found) else None


def merge_packs(packs: Iterable[Pack], catalog: Catalog) -> dict[str, Callable[..., Any]]:
    """One handler per tool; two packs with one tool, or a handler for a tool the catalog lacks, are mistakes."""
    merged: dict[str, Callable[..., Any]] = {}
    for pack in packs:
        for name, handler in pack.handlers.items():
            if name not in catalog.tools:
                raise SetupError(
                    f"a pack handles {name!r}, which is no tool of this toolkit.{nearest(name, catalog.tools)}"
                )
            if name in merged:
                raise SetupError(
                    f"two packs handle {name!r}: {_owner(merged[name])} and {_owner(handler)}; drop one with `without`"
                )
            merged[name] = handler
    return merged


def _owner(handler: Callable[..., Any]) -> str:
    return f"{getattr(handler, '__module__', '?')}.{getattr(handler, '__qualname__', type(handler).__name__)}"
