"""The catalog of a generated package, packs of handlers, and what the road needs to know of each tool."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from pydantic import BaseModel

from toolkit.errors import GenerationError, SetupError, nearest
from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.permission import Permission, Permissions
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.call.reader import Reader
from toolkit.runtime.context.toolkit_context import ToolContext
from toolkit.runtime.output.keep_text import Keeper
from toolkit.runtime.output.message import ToolMessage
from toolkit.runtime.workers import is_async
from toolkit.wire.aliases import alias, is_plain
from toolkit.wire.json_types import JsonObject
from toolkit.wire.result import ToolResult

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
    function: str | None = None
    """``module:function`` where the tool was read from a function, which then runs it."""


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

    def reader(self, info: ToolInfo, kind: str) -> Reader:
        """What reads the arguments (``Input``) or the outputs (``Output``) of a tool."""
        return Reader(self.model(info, kind))

    def message(self, info: ToolInfo) -> Callable[..., ToolMessage[Any, Any]]:
        """What makes the messages of a tool."""
        return ToolMessage

    def function(self, name: str) -> CodeTool | None:
        """The code-first tool that extends the catalog under this name."""
        return None

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> title, description and schemas of each tool, from the manifests of the packages they come from."""
        packages = dict.fromkeys(tool.module.rpartition(".models.")[0] for tool in self.tools.values())
        found = {row["name"]: row for package in packages for row in _manifest_rows(package)}
        return {name: found[name] for name in self.tools}

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """The names that providers are told instead of those they would refuse, and what they stand for."""
        return {alias(name): name for name in self.tools if not is_plain(name)}

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


@runtime_checkable
class CodeTool(Protocol):
    """A tool made of a function, or to be made of one: what ``@tool`` and ``define_tool`` give."""

    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def permissions(self) -> Permissions: ...
    def as_pack(self) -> Pack: ...
    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult: ...
    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult: ...


@runtime_checkable
class PackSource(Protocol):
    """What can join a toolkit: a pack, a registry, a code-first tool."""

    def as_pack(self) -> Pack: ...


class Pack:
    """Handlers by tool name, made by a generated ``bind``, which checks that every one is there and fits; and code-first
    tools, which bring their own.

    >>> Pack({"done": print}).without("done").handlers
    {}
    """

    def __init__(
        self, handlers: Mapping[str, Callable[..., Any]] | None = None, tools: Iterable[CodeTool] = ()
    ) -> None:
        self.handlers: Final = dict(handlers or {})
        self.tools: Final = tuple(tools)

    def as_pack(self) -> Pack:
        return self

    def without(self, *names: str) -> Pack:
        """The same pack less some tools, which then are no longer offered and fail as NO_HANDLER when called."""
        known = [*self.handlers, *(tool.name for tool in self.tools)]
        for name in names:
            if name not in known:
                raise SetupError(f"this pack has no handler for {name!r}.{nearest(name, known)}")
        handlers = {name: handler for name, handler in self.handlers.items() if name not in names}
        return Pack(handlers, [tool for tool in self.tools if tool.name not in names])


@dataclass(slots=True)
class Tool:
    """One tool as a toolkit holds it: everything that can be decided before a call is decided here."""

    info: ToolInfo
    input: Reader
    output: Reader
    refusal: str | None = None
    """Why no call of it can pass, or None."""
    always: Verdict | None = None
    """What lets every call pass, so that nobody needs to look at what it touches."""
    handler: Callable[..., Any] | None = None
    """What runs it; what is injected into it is taken care of."""
    preview: Callable[..., Any] | None = None
    render: Callable[[Any], str] | None = None
    """What the handler's module exports beside its ``run`` as ``preview`` and ``text``."""
    keeper: Keeper | None = None
    """Where its texts are kept; None for tools that read what is kept."""
    granted: frozenset[Permission] = frozenset()
    fs: SandboxFS | None = None
    """The workspace's files, if its permissions grant them."""
    message: Callable[..., ToolMessage[Any, Any]] = ToolMessage
    """What makes its messages."""
    output_check: str = "off"
    input_schema: Callable[[], JsonObject] | None = None
    """Set where arguments may be repaired."""
    name: str = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.info.name
        self.is_async = self.handler is not None and is_async(self.handler)


BESIDE: Final = "__toolkit_beside__"
"""The attribute in which a handler that is no function ``run`` of a module carries its ``text`` and ``preview``; and
``sandbox``, False where what it runs has none because its pack says so."""

NO_SANDBOX: Final = "none (sandbox=false)"
"""What the audit log and results say in the place of a tier, where a pack opted out of the sandbox."""


def beside(handler: Callable[..., Any] | None, name: str) -> Callable[..., Any] | None:
    """A function that a handler module exports beside its ``run``: ``text`` or ``preview``."""
    space = getattr(handler, "__globals__", {})
    found = space.get(name) if space.get("run") is handler else getattr(handler, BESIDE, {}).get(name)
    return found if callable(found) else None


def opts_out(handler: Callable[..., Any] | None) -> bool:
    """Whether what a handler runs has no sandbox, by the word of whoever made its pack."""
    return getattr(handler, BESIDE, {}).get("sandbox") is False
