"""Packs: handlers with their parts, and whatever else can join a toolkit; how packs are found, joined and loaded late."""

from __future__ import annotations

import importlib
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    final,
    runtime_checkable,
)

from toolkit.errors import SetupError, nearest
from toolkit.inject import name_of
from toolkit.runtime.catalog import Catalog, ToolInfo
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.workers import is_async

if TYPE_CHECKING:
    from types import FrameType

    from toolkit.guard.permission import CommandNetwork, Permission, Permissions
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.arguments import Reader
    from toolkit.runtime.functions import FunctionOutput, FunctionTool
    from toolkit.wire.call import JsonObject, ToolResult
    from toolkit.wire.definition import ToolDefinition


InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

Handler: TypeAlias = Callable[Concatenate[InputT, ToolContext, ...], OutputT | Awaitable[OutputT]]
"""Runs a tool: takes validated arguments and the context, returns the output; sync or async."""


class CodeTool(ABC):
    """What ``@tool`` and ``define_tool`` return: a ``FunctionTool``, or a ``LazyTool`` that a factory makes later."""

    name: str
    permissions: Permissions
    long_description: str | None
    """A longer text for the model, from a file; a toolkit fills in the workspace."""

    @property
    @abstractmethod
    def owner(self) -> str:
        """Where it comes from: ``module.function``, or ``module.factory``."""

    @property
    @abstractmethod
    def definition(self) -> ToolDefinition:
        """Name, description and schema. A toolkit fills in the workspace of a long description."""

    @abstractmethod
    def replace(
        self,
        *,
        permissions: Permissions | Iterable[Permission] | None = None,
        long_description: str | None = None,
    ) -> CodeTool:
        """A copy with other permissions, or another long description."""

    def as_pack(self) -> Pack:
        return Pack(tools=[self])

    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult:
        """Runs the tool with argument text a model wrote, as the toolkit behind ``ctx`` would; never raises.

        Policy, permissions, validation and output check apply as in a call of that toolkit. A failure becomes
        ``kind="error"`` with the text ``CODE: message``. An async function is awaited in the toolkit's loop.
        With a ``ToolContext.standalone(...)``, a tool that is set up wrongly (an annotation that cannot be read, a parameter
        that cannot be injected) raises ``SetupError``, and the result says which permission a handler lacks.
        """
        from toolkit.runtime.registry import execute

        return execute(self, text, ctx)

    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        from toolkit.runtime.registry import execute_async

        return await execute_async(self, text, ctx)


@runtime_checkable
class PackSource(Protocol):
    """Anything that can join a toolkit: a pack, a registry, a code-first tool."""

    def as_pack(self) -> Pack: ...


class Pack:
    """Handlers by tool name, and code-first tools, which have their own.

    A generated ``bind`` makes packs and lets the type checker verify that every handler is there and fits its tool.

    >>> Pack({"done": print}).without("done").handlers
    {}
    """

    def __init__(
        self, handlers: Mapping[str, Callable[..., Any]] | None = None, tools: Iterable[CodeTool] = ()
    ) -> None:
        self.handlers: Final = dict(handlers or {})
        self.tools: Final = tuple(tools)

    def __repr__(self) -> str:
        return f"<Pack: {', '.join([*self.handlers, *(tool.name for tool in self.tools)]) or 'no tools'}>"

    def as_pack(self) -> Pack:
        return self

    def without(self, *names: str) -> Pack:
        """A copy without some tools: they are no longer offered, and fail as NO_HANDLER when called."""
        known = [*self.handlers, *(tool.name for tool in self.tools)]
        for name in names:
            if name not in known:
                raise SetupError(f"this pack has no handler for {name!r}.{nearest(name, known)}")
        handlers = {name: handler for name, handler in self.handlers.items() if name not in names}
        return Pack(handlers, [tool for tool in self.tools if tool.name not in names])


# ----------------------------------------------------------------------------------------------------------------------
# A handler with everything that belongs to it: how its output reads as text, what a call touches, what is kept.

P = ParamSpec("P")
R = TypeVar("R")


Place: TypeAlias = Literal["toolkit", "local server", "remote"]


@final
@dataclass(frozen=True, slots=True)
class HandlerParts(Generic[P, R]):
    """A handler and its parts, to be bound in the place of a plain ``run`` function.

    A handler module needs no such object: its ``text``, ``preview`` and ``KEEPS_OUTPUT`` are found next to its ``run``,
    also when ``run`` is decorated with a decorator that uses ``functools.wraps``. A decorator without it hides the module;
    then bind ``HandlerParts(run, text=text, preview=preview)``.
    """

    run: Callable[P, R]
    text: Callable[[Any], str] | None = None
    """The output as the model reads it; JSON if not given."""
    preview: Callable[[Any, ToolContext], Preview] | None = None
    """What a call would touch; the spec's ``x-resource`` marks are used if not given. It runs before the policy decides, so
    do not raise: the error could show a refused caller what is in a file."""
    sandboxed: bool = True
    """False where what the handler starts has no sandbox because its pack opted out of it."""
    keeps_output: bool = True
    """False for a tool that reads kept outputs: what it answers is neither kept again nor cut."""
    place: Place = "toolkit"
    """What does the work: this toolkit, or a server that the handler calls."""
    network: CommandNetwork = "none"
    """What the process of a local server reaches."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(*args, **kwargs)


def find_parts(handler: Callable[..., Any]) -> HandlerParts[..., Any]:
    """The parts of a handler: those it carries, or those its module exports next to ``run``."""
    if isinstance(handler, HandlerParts):
        return handler
    *_, innermost = chain = list(_unwrap(handler))
    module = _module_of(innermost)
    exported = module.get("run")
    if not any(exported is layer for layer in chain):
        return HandlerParts(handler)
    return HandlerParts(
        handler,
        text=_callable(module.get("text")),
        preview=_callable(module.get("preview")),
        keeps_output=module.get("KEEPS_OUTPUT") is not False,
    )


def _unwrap(handler: Any) -> Iterator[Any]:
    """The handler, and what each ``functools.wraps`` around it wrapped; decorators that form a cycle end it."""
    seen: set[int] = set()
    while handler is not None and id(handler) not in seen:
        seen.add(id(handler))
        yield handler
        handler = getattr(handler, "__wrapped__", None)


def _module_of(handler: Any) -> Mapping[str, Any]:
    space: Mapping[str, Any] | None = getattr(handler, "__globals__", None)
    if space is None:  # an object that can be called
        space = getattr(sys.modules.get(getattr(handler, "__module__", None) or ""), "__dict__", {})
    return space


def _callable(value: object) -> Callable[..., Any] | None:
    return value if callable(value) else None


# ----------------------------------------------------------------------------------------------------------------------
# Handlers of the toolkit's own tools, whose modules are imported at the first use of the tool.
#
# A program that calls one built-in tool then does not import the other ones. Only for modules of the toolkit, which are known
# to be right: a mistake in somebody's own handler must be found when the toolkit is built.


class LazyHandler:
    """The ``run`` of a handler module that is not imported yet, and what a policy must know before that."""

    def __init__(self, module: str, *, has_preview: bool) -> None:
        self.module: Final = module
        self.has_preview: Final = has_preview

    def load(self) -> HandlerParts[..., Any]:
        parts = find_parts(importlib.import_module(self.module).run)
        # Rules were checked, and will be applied, by what was said here.
        if (parts.preview is not None) != self.has_preview:
            raise SetupError(
                f"{self.module!r} {'has no' if self.has_preview else 'has a'} preview, but is bound otherwise"
            )
        return parts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.load().run(*args, **kwargs)


def is_own_sync_handler(run: Callable[..., Any]) -> bool:
    """Whether a handler is one of the toolkit's own, and a plain function."""
    return getattr(run, "__module__", "").startswith("toolkit.builtin.") and not is_async(run)


class LazyModule:
    """Stands for a handler module where handlers are bound; type checkers see the module itself."""

    def __init__(self, name: str, *, has_preview: bool = False) -> None:
        self.run: Final = LazyHandler(name, has_preview=has_preview)


class Handlers:
    """The handlers of a toolkit by the names of their tools. Lazy ones are imported when they are first asked for."""

    def __init__(self, found: Mapping[str, HandlerParts[..., Any] | LazyHandler]) -> None:
        self._found: Final = dict(found)

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def get(self, name: str) -> HandlerParts[..., Any] | None:
        found = self._found.get(name)
        if isinstance(found, LazyHandler):
            found = self._found[name] = found.load()
        return found

    def loaded(self) -> list[HandlerParts[..., Any]]:
        """Those that need no import: all of somebody's own packs."""
        return [parts for parts in self._found.values() if not isinstance(parts, LazyHandler)]

    def load_all(self) -> Iterator[HandlerParts[..., Any]]:
        for name in self._found:
            parts = self.get(name)
            assert parts is not None
            yield parts

    def has_preview(self, name: str) -> bool:
        found = self._found.get(name)
        return found is not None and (
            found.has_preview if isinstance(found, LazyHandler) else found.preview is not None
        )

    def place(self, name: str) -> Place:
        """What does the work of a tool."""
        found = self._found.get(name)
        return found.place if isinstance(found, HandlerParts) else "toolkit"

    def network(self, name: str) -> CommandNetwork:
        """What the server of a tool reaches."""
        found = self._found.get(name)
        return found.network if isinstance(found, HandlerParts) else "none"

    def is_sandboxed(self, name: str) -> bool:
        """Whether what a handler starts is in the sandbox. Handlers of the toolkit itself cannot opt out of it."""
        found = self._found.get(name)
        return not isinstance(found, HandlerParts) or found.sandboxed


# ----------------------------------------------------------------------------------------------------------------------
# Joins packs to a catalog: handlers for its tools, and code-first tools that extend it.

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
    from toolkit.runtime.functions import make_generated_handler, make_handler

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


# ----------------------------------------------------------------------------------------------------------------------
# Loads a pack that is named as ``"module:name"``, and says what is wrong with a module that cannot be imported.

ALL: Final = "*"
"""``"module:*"`` means every tool of the module."""

_MISSING: Final = re.compile(r"^bind\(\) missing \d+ required keyword-only arguments?: (.*)$")
_UNEXPECTED: Final = re.compile(r"^bind\(\) got an unexpected keyword argument '(\w+)'")


def load_pack(source: PackSource | str) -> Pack:
    """Loads a pack from ``"module:name"``; ``"module:*"`` means all code-first tools of the module."""
    if not isinstance(source, str):
        try:
            return source.as_pack()
        except AttributeError:
            raise SetupError(f"{type(source).__name__} is not a pack: give packs, registries or tools") from None
    module_name, _, name = source.partition(":")
    try:
        module = importlib.import_module(module_name)
    except SetupError:
        raise
    except Exception as error:  # whatever the module raises while it is imported
        raise SetupError(f"the pack {source!r} cannot be loaded: {_explain(error)}") from error
    try:
        found: object = find_tools(module) if name == ALL else getattr(module, name)
    except AttributeError as error:
        hint = nearest(name, vars(module))
        raise SetupError(f"the pack {source!r} cannot be loaded: {error}{'.' if hint else ''}{hint}") from error
    pack = found.as_pack() if isinstance(found, PackSource) else None
    if not isinstance(pack, Pack):
        raise SetupError(f"{source!r} is not a pack of handlers: make one with the generated `bind`")
    return pack


def find_tools(module: object) -> Pack:
    """The code-first tools among the public names of a module, in the order of the module."""
    space = vars(module)
    names: Iterable[str] = space.get("__all__") or [name for name in space if not name.startswith("_")]
    found = [value for name in names if isinstance(value := space.get(name), CodeTool)]
    if not found:
        raise SetupError(f"the module {space.get('__name__')!r} has no tools: none of its public names is one")
    # A module may hold one tool under two names.
    return Pack(tools={id(tool): tool for tool in found}.values())


def _explain(error: Exception) -> str:
    """What a module of the user raised, and where."""
    calls = list(_own_calls(error))
    place = ""
    if isinstance(error, SyntaxError) and error.filename is not None:
        place = f" at {_shown_file(error.filename)}:{error.lineno}"
    elif calls:
        frame, line = calls[-1]
        place = f" at {_shown_file(frame.f_code.co_filename)}:{line}"
    if isinstance(error, TypeError) and (missing := _MISSING.match(str(error))):
        names = re.findall(r"'(\w+)'", missing[1])
        added = ", ".join(f"{name}=..." for name in names)
        return f"bind() needs {'a handler' if len(names) == 1 else 'handlers'} for {missing[1]}; write {added}{place}"
    if isinstance(error, TypeError) and (unexpected := _UNEXPECTED.match(str(error))):
        bind = calls[-1][0].f_globals.get("bind") if calls else None
        meant = nearest(unexpected[1], _parameters_of(bind)) or " If its spec is new, run `toolkit generate`."
        return f"bind(){place} names {unexpected[1]!r}, which is not a tool of the generated package.{meant}"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}{place}"
    return f"{error}{place}" if isinstance(error, ImportError) else f"{type(error).__name__}: {error}{place}"


def _own_calls(error: Exception) -> Iterator[tuple[FrameType, int]]:
    """The calls on the way to an error, with their lines, that are neither Python's, nor of a library, nor ours."""
    import sysconfig
    import traceback

    paths = sysconfig.get_paths()
    ours = __file__.removesuffix("runtime/packs.py")
    foreign = (ours, "<", *(f"{paths[key]}/" for key in ("stdlib", "purelib", "platlib")))
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(foreign):
            yield frame, line


def _shown_file(path: str) -> str:
    """The path of a file, relative to the current folder if the file is below it."""
    import os

    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _parameters_of(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
