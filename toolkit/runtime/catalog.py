"""The catalog of a generated package: one row per tool, where its models and schemas are, and model calls parsed by it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from toolkit.errors import GenerationError
from toolkit.guard.policy.rule import HINTS, Hint, effective_hints
from toolkit.runtime import path
from toolkit.runtime.arguments import Reader
from toolkit.runtime.boundary import NOTHING_TO_RUN, CommandBoundary
from toolkit.runtime.late_imports import remembered_file
from toolkit.runtime.output import MessageForm, NewMessage, ToolMessage
from toolkit.runtime.workers import is_async

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.consent import Consent
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import Verdict
    from toolkit.runtime.discovery import ToolIndex
    from toolkit.runtime.functions import FunctionOutput
    from toolkit.runtime.packs import CodeTool, Place
    from toolkit.runtime.signatures import CatalogSignatures
    from toolkit.runtime.turns import CallLimits
    from toolkit.wire.call import JsonObject, ToolCall


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
        from toolkit.runtime.functions import OutputReader

        return OutputReader(output)

    def message(self, info: ToolInfo) -> NewMessage:
        """The constructor of a tool's messages."""
        output = self.function_output(info)
        return ToolMessage if output is None else output.message

    def function_output(self, info: ToolInfo) -> FunctionOutput | None:
        """The return type of a tool whose outputs are not generated models."""
        if not info.own_output:
            return None
        from toolkit.runtime.functions import FunctionOutput

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
        from toolkit.wire.definition import alias, is_plain

        return {alias(name): name for name in self.tools if not is_plain(name)}

    @cached_property
    def signatures(self) -> CatalogSignatures:
        """The signatures of the tools, as Python text."""
        from toolkit.runtime.signatures import CatalogSignatures

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


# ----------------------------------------------------------------------------------------------------------------------
# One tool as a toolkit holds it, with everything that is decided before the first call.


@dataclass(slots=True)
class Tool:
    """One tool of a toolkit, with all that is the same for each of its calls; made at its first use."""

    info: ToolInfo
    input: Reader
    output: Reader
    refusal: str | None = None
    """Why every call is refused, or None."""
    by_name: Verdict | None = None
    """The policy's verdict by the name alone; None if it depends on what a call touches."""
    always: Verdict | None = None
    """The verdict that allows every call, so that no call needs a preview; None if there is none."""
    handler: Callable[..., Any] | None = None
    """Runs it, with its dependencies injected."""
    preview: Callable[..., Any] | None = None
    """The ``preview`` of its handler."""
    place: Place = "toolkit"
    """What does its work: this toolkit, or a server."""
    granted: frozenset[Permission] = frozenset()
    commands: CommandBoundary = NOTHING_TO_RUN
    """What binds its commands."""
    fs: SandboxFS | None = None
    """The files of the workspace, if its permissions grant them."""
    preview_fs: SandboxFS | None = None
    """The same for previews and approvals, which must see what nobody has approved yet. Deny rules stay."""
    consent: Consent | None = None
    """What its calls may touch without approval, if that is limited; ``fs`` enforces it."""
    message: NewMessage = ToolMessage
    """The constructor of its messages."""
    form: MessageForm = field(default_factory=MessageForm)
    """What the messages with its own output model have in common."""
    output_check: str = "off"
    input_schema: Callable[[], JsonObject] | None = None
    """Set if arguments may be repaired."""
    looks_at_signal: bool = False
    """Whether it is a sync handler of ours, which ends soon after its signal says so."""
    turns: CallLimits | None = None
    """Set if only so many of its calls may run at the same time."""
    other_form: MessageForm = field(init=False)
    """The same for other values."""
    name: str = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.info.name
        self.is_async = self.handler is not None and is_async(self.handler)
        self.other_form = replace(self.form, to_json=None)


NO_SANDBOX: Final = "none (sandbox=false)"
"""The tier that the audit log and results report for a pack that opted out of the sandbox."""


# ----------------------------------------------------------------------------------------------------------------------
# The toolkit's own marks in schemas, which are not shown to models.

_MARKS: Final = frozenset({"x-resource", "x-secret"})
_BY_NAME: Final = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_DATA: Final = frozenset({"default", "const", "enum", "examples"})


def strip_marks(schema: Any) -> Any:
    """A copy of the schema without our marks. A property that has the name of a mark stays.

    >>> strip_marks({"properties": {"x-secret": {"type": "string", "x-secret": True}}})
    {'properties': {'x-secret': {'type': 'string'}}}
    """
    if isinstance(schema, list):
        return [strip_marks(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _strip_value(key, value) for key, value in schema.items() if key not in _MARKS}


def _strip_value(key: str, value: Any) -> Any:
    if key in _DATA:
        return deepcopy(value)
    if key in _BY_NAME and isinstance(value, dict):
        return {name: strip_marks(item) for name, item in value.items()}
    return strip_marks(value)


# ----------------------------------------------------------------------------------------------------------------------
# Parses a model's call without running it: the name is known, the arguments are validated.


def parse_call(catalog: Catalog, call: ToolCall) -> ParsedCall[Any, Any]:
    """The call with validated arguments. The policy is not asked and nothing runs; raises as ``invoke`` does."""
    info = catalog.tools.get(call.name) if isinstance(call.name, str) else None
    if info is None:
        raise path.not_found(call.name, catalog.tools)
    reader = Reader(catalog.model(info, "Input"))
    tool = Tool(info, reader, reader)
    text = call.unread_text
    arguments = path.as_object(tool, call.arguments if text is None else text, is_text=text is not None)

    return ParsedCall(call.id, tool.name, path.validate(tool, arguments)[0])


# ----------------------------------------------------------------------------------------------------------------------
# A model's call with validated arguments. A union of them narrows by ``.name``.

NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ParsedCall(Generic[NameT_co, ContentT_co]):
    """A ``ToolCall`` whose name is known and whose arguments are validated; see ``parse_call``."""

    id: str
    name: NameT_co
    arguments: ContentT_co
