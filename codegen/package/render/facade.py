"""``Toolkit`` and ``AsyncToolkit``: the run time's road with a typed door for every tool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from codegen.package.render.literal import docstring, literal
from codegen.package.render.modules import header
from codegen.package.rows import Parameter, Row


@dataclass(frozen=True, slots=True)
class Flavour:
    """What differs between the two facades."""

    prefix: str
    runner: str
    module: str
    define: str
    wait: str
    factory: str


MODULE_NAMES: Final = frozenset(
    {
        "Any", "AnyToolMessage", "AsyncRunner", "AsyncTools", "CATALOG", "Callable", "DynamicContext", "Iterable",
        "JsonObject", "Literal", "OMIT", "Omit", "PACKS", "PackSource", "Runner", "TYPE_CHECKING", "ToolMessage",
        "ToolkitContext", "Tools", "TypeAlias", "annotations", "builtins", "create_agent_toolkit",
        "create_async_agent_toolkit", "overload",
    }
)  # fmt: skip
"""What the modules below define and import themselves, whatever the tools are."""

SYNC = Flavour("", "Runner", "toolkit.runtime.call.runner", "def", "", "create_agent_toolkit")
ASYNC = Flavour(
    "Async", "AsyncRunner", "toolkit.runtime.call.async_runner", "async def", "await ", "create_async_agent_toolkit"
)


class Scope:
    """Names of the module inside the class of tools: a method or parameter of the same name would hide them there, so that
    such a name is imported with an underscore, which no tool and no parameter has."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.hiding = {row.attribute for row in rows} | {p.name for row in rows for p in row.parameters}
        names = Counter(name for row in rows for name in (*_models(row), *row.imports))
        self.shared = {name for name, count in names.items() if count > 1}

    def __call__(self, name: str) -> str:
        return f"_{name}" if name in self.hiding else name

    def nested(self, row: Row, name: str) -> str:
        """A nested type of one tool; tool ``get`` with an object ``args`` has one called as the arguments of ``get_args``."""
        return f"_{row.attribute}_{name}" if name in self.shared else self(name)

    def imported(self, names: Sequence[str]) -> str:
        return ", ".join(map(_as, sorted(names), map(self, sorted(names))))

    def imported_models(self, row: Row) -> str:
        spelled = {**{name: self.nested(row, name) for name in row.imports}, **{n: self(n) for n in _models(row)}}
        return ", ".join(_as(name, spelled[name]) for name in sorted(spelled))


def _models(row: Row) -> tuple[str, ...]:
    return tuple(f"{row.prefix}{suffix}" for suffix in ("Args", "Input", "Output"))


def _as(name: str, spelled: str) -> str:
    return name if name == spelled else f"{name} as {spelled}"


def render_facade(rows: Sequence[Row], package: str, class_name: str, packs: Sequence[str], flavour: Flavour) -> str:
    """One facade module."""
    scope = Scope(rows)
    body = _body(rows, scope, class_name, packs, flavour)
    title = "The typed async Toolkit." if flavour is ASYNC else "The typed Toolkit."
    alias = scope("builtins")
    return f"""# mypy: ignore-errors
{header(title)}
import builtins{f" as {alias}" if alias != "builtins" else ""}
from collections.abc import {scope.imported(["Callable"])}, Iterable
from typing import TYPE_CHECKING, {_used(body, scope, ["Any", "Literal"])}{_outside_the_tools(body)}

from {package}.catalog import CATALOG
{_omit_import(body, scope)}from {flavour.module} import {flavour.runner}
from toolkit.runtime.catalog.catalog import PackSource
from toolkit.wire.json_types import JsonObject

if TYPE_CHECKING:
    from {package}.context import ToolkitContext
    from {package}.unions import AnyToolMessage
    from toolkit.runtime.context.dynamic import DynamicContext
{_imports(rows, scope)}{body}"""


def _used(body: str, scope: Scope, names: Sequence[str]) -> str:
    """Those of the names that the module's body uses, as an import lists them."""
    return scope.imported([name for name in names if re.search(rf"\b{scope(name)}\b", body)])


def _outside_the_tools(body: str) -> str:
    """Names that no method of the tools can hide."""
    return "".join(f", {name}" for name in ("TypeAlias", "overload") if re.search(rf"(: |@){name}\b", body))


def _omit_import(body: str, scope: Scope) -> str:
    names = _used(body, scope, ["OMIT", "Omit"])
    return f"from toolkit.runtime.catalog.omit import {names}\n" if names else ""


def _body(rows: Sequence[Row], scope: Scope, class_name: str, packs: Sequence[str], flavour: Flavour) -> str:
    name = f"{flavour.prefix}{class_name}"
    alias = "" if class_name == "Toolkit" else f"\n\n\n{flavour.prefix}Toolkit: TypeAlias = {name}"
    message = "    from toolkit.runtime.output.message import ToolMessage\n" if rows else ""
    return f"""{message}
PACKS: tuple[str, ...] = {literal(tuple(packs))}


{_tools(rows, scope, flavour)}


class {name}({flavour.runner}):
    \"\"\"Every tool by name: `invoke` with a literal name gives that tool's output type.\"\"\"

    @property
    def tools(self) -> {flavour.prefix}Tools:
        \"\"\"Every tool as a method with keyword arguments.\"\"\"
        return {flavour.prefix}Tools(self._call_tool)

    if TYPE_CHECKING:
{_invoke(rows, scope, flavour)}

        {flavour.define} execute_raw(self, name: str, text: str) -> AnyToolMessage:
            \"\"\"`invoke` for argument text a model wrote.\"\"\"
            return {flavour.wait}self._execute_raw(name, text)

    else:
        invoke = {flavour.runner}._invoke
        execute_raw = {flavour.runner}._execute_raw{alias}


def {flavour.factory}(
    context: ToolkitContext | DynamicContext, *, packs: Iterable[PackSource | str] = PACKS
) -> {name}:
    \"\"\"A toolkit over a workspace and a policy; `packs` says who handles the tools, and may bring code-first ones.\"\"\"
    return {name}(CATALOG, context, packs)
"""


def _imports(rows: Sequence[Row], scope: Scope) -> str:
    return "".join(f"    from {row.module} import {scope.imported_models(row)}\n" for row in rows)


def _tools(rows: Sequence[Row], scope: Scope, flavour: Flavour) -> str:
    methods = "".join(f"\n{_method(row, scope, flavour)}" for row in rows)
    any_ = scope("Any")
    builtin = scope("builtins")
    return f"""class {flavour.prefix}Tools:
    \"\"\"Every tool as a method; nothing else lives here.\"\"\"

    __slots__ = ("_call",)

    def __init__(self, call: {scope("Callable")}[[{builtin}.str, {builtin}.dict[{builtin}.str, {any_}]], {any_}]) -> None:
        self._call = call
{methods}""".rstrip()


def _method(row: Row, scope: Scope, flavour: Flavour) -> str:
    output = scope(f"{row.prefix}Output")
    parameters = "".join(f"        {_parameter(parameter, row, scope)},\n" for parameter in row.parameters)
    signature = f"(\n        self,\n        *,\n{parameters}    )" if parameters else "(self)"
    given = "".join(f"                {literal(p.wire)}: {p.name},\n" for p in row.parameters)
    arguments = f"{{\n{given}            }}" if given else "{}"
    return f"""    {flavour.define} {row.attribute}{signature} -> {output}:
{docstring(_doc(row), "        ")}
        _content: {output} = {flavour.wait}self._call(
            {literal(row.name)},
            {arguments},
        )
        return _content
"""


def _parameter(parameter: Parameter, row: Row, scope: Scope) -> str:
    kind = parameter.type
    spelled = {word: scope(word) for word in ("builtins", "Any", "Literal")}
    spelled |= {word: scope.nested(row, word) for word in row.imports}
    if any(word != other for word, other in spelled.items()):
        kind = _replaced(kind, spelled)
    if parameter.required:
        return f"{parameter.name}: {kind}"
    if parameter.default is not None:
        return f"{parameter.name}: {kind} = {parameter.default}"
    return f"{parameter.name}: {kind} | {scope('Omit')} = {scope('OMIT')}"


def _replaced(source: str, spelled: dict[str, str]) -> str:
    """The expression with its names spelled as the table says; texts inside a Literal stay."""
    import ast

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(spelled.get(node.id, node.id))

    return ast.unparse(Rename().visit(ast.parse(source, mode="eval")))


def _doc(row: Row) -> str:
    lines = [row.description.strip() or f"Runs the tool {row.name!r}."]
    described = [(p.name, " ".join(p.description.split())) for p in row.parameters if p.description]
    if described:
        lines += ["", *(f":param {name}: {words}" for name, words in described)]
    return "\n".join(lines)


def _invoke(rows: Sequence[Row], scope: Scope, flavour: Flavour) -> str:
    overloads = [_overload(row, scope, flavour) for row in rows]
    dynamic = f"        {flavour.define} invoke(self, name: str, args: JsonObject) -> AnyToolMessage:"
    doc = '            """Runs a tool by name: resolve, policy, validate, run, message. Raises `ToolkitError`."""'
    if not rows:
        return f"{dynamic}\n{doc}\n            return {flavour.wait}self._invoke(name, args)"
    literal_any = scope("Any")
    overloads.append(f"        @overload\n{dynamic} ...")
    body = f"        {flavour.define} invoke(self, name: str, args: {literal_any}) -> {literal_any}:"
    return "\n".join([*overloads, "", body, doc, f"            return {flavour.wait}self._invoke(name, args)"])


def _overload(row: Row, scope: Scope, flavour: Flavour) -> str:
    kind = f"{scope('Literal')}[{literal(row.name)}]"
    models = f"{scope(row.prefix + 'Input')} | {scope(row.prefix + 'Args')}"
    return f"""        @overload
        {flavour.define} invoke(
            self, name: {kind}, args: {models}
        ) -> ToolMessage[{kind}, {scope(row.prefix + "Output")}]: ..."""
