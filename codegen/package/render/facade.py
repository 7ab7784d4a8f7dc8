"""``Toolkit`` and ``AsyncToolkit``: the run time's road with a typed door for every tool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.codegen.package.render.literal import docstring, literal
from toolkit.codegen.package.render.modules import header, import_path, model_names
from toolkit.codegen.package.rows import Parameter, Row


@dataclass(frozen=True, slots=True)
class Flavour:
    """What differs between the two facades."""

    prefix: str
    runner: str
    call: str
    define: str
    wait: str
    factory: str


MODULE_NAMES: Final = frozenset(
    {
        "Any", "AnyToolMessage", "AsyncRunner", "AsyncTools", "CATALOG", "CallTool", "CallToolAsync", "DynamicContext",
        "Iterable", "JsonObject", "Literal", "OMIT", "Omit", "PACKS", "PackSource", "Runner", "TYPE_CHECKING",
        "ToolMessage", "ToolkitContext", "Tools", "TypeAlias", "annotations", "builtins", "create_agent_toolkit",
        "create_async_agent_toolkit", "overload",
    }
)  # fmt: skip
"""What the modules below define and import themselves, whatever the tools are."""

SYNC = Flavour("", "Runner", "CallTool", "def", "", "create_agent_toolkit")
ASYNC = Flavour("Async", "AsyncRunner", "CallToolAsync", "async def", "await ", "create_async_agent_toolkit")

_BUILTINS: Final = ("bool", "dict", "float", "int", "list", "str")
_LINE: Final = 120
_WHY_IGNORED: Final = """\
# mypy: ignore-errors
# Why: mypy compares every overload with every other one, which takes it half a minute for 1,000 tools.
"""


class Scope:
    """Names of the module inside the class of tools.

    A method of the same name hides them there. Such a name is imported with an underscore, which no tool has; a builtin
    type is written through ``builtins``.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.hiding = {row.attribute for row in rows}
        names = Counter(name for row in rows for name in (*model_names(row), *row.imports))
        self.shared = {name for name, count in names.items() if count > 1}

    def __call__(self, name: str) -> str:
        return f"_{name}" if name in self.hiding else name

    def nested(self, row: Row, name: str) -> str:
        """A nested type of one tool: tool ``get`` with an object ``args`` has one with the name of the arguments of
        ``get_args``."""
        return f"_{row.attribute}_{name}" if name in self.shared else self(name)

    def type_of(self, parameter: Parameter, row: Row) -> str:
        """The type of a parameter with every hidden name spelled another way."""
        spelled = {word: self(word) for word in ("Any", "Literal")}
        spelled |= {word: self.nested(row, word) for word in row.imports}
        spelled |= {word: f"{self('builtins')}.{word}" for word in _BUILTINS if word in self.hiding}
        changed = {word: other for word, other in spelled.items() if word != other}
        used = any(re.search(rf"\b{word}\b", parameter.type) for word in changed)
        return _replaced(parameter.type, changed) if used else parameter.type

    def imported(self, names: Sequence[str]) -> str:
        return ", ".join(map(_as, sorted(names), map(self, sorted(names))))

    def importedmodel_names(self, row: Row) -> str:
        spelled = {**{name: self.nested(row, name) for name in row.imports}, **{n: self(n) for n in model_names(row)}}
        return ", ".join(_as(name, spelled[name]) for name in sorted(spelled))


def _as(name: str, spelled: str) -> str:
    return name if name == spelled else f"{name} as {spelled}"


def render_facade(rows: Sequence[Row], package: str, class_name: str, packs: Sequence[str], flavour: Flavour) -> str:
    """One facade module."""
    scope = Scope(rows)
    body = _body(rows, scope, class_name, packs, flavour)
    title = "The typed async Toolkit." if flavour is ASYNC else "The typed Toolkit."
    alias = scope("builtins")
    builtins = f"import {_as('builtins', alias)}\n" if re.search(rf"\b{alias}\.", body) else ""
    used = _used(body, scope, ["Any", "Literal"])
    support = _used(body, scope, [flavour.call, "OMIT", "Omit"]) + f", JsonObject, PackSource, {flavour.runner}"
    return f"""{_WHY_IGNORED}{header(title)}
{builtins}from collections.abc import Iterable
from typing import TYPE_CHECKING{f", {used}" if used else ""}{_outside_the_tools(body)}

from toolkit.generated_support import {support}

from .catalog import CATALOG

if TYPE_CHECKING:
    from toolkit.generated_support import {"DynamicContext, ToolMessage" if rows else "DynamicContext"}

    from .context import ToolkitContext
{_imports(rows, scope, package)}    from .unions import AnyToolMessage

{body}"""


def _used(body: str, scope: Scope, names: Sequence[str]) -> str:
    """Those of the names that the module's body uses, as an import lists them."""
    return scope.imported([name for name in names if re.search(rf"\b{scope(name)}\b", body)])


def _outside_the_tools(body: str) -> str:
    """Names that no method of the tools can hide."""
    return "".join(f", {name}" for name in ("TypeAlias", "overload") if re.search(rf"(: |@){name}\b", body))


def _body(rows: Sequence[Row], scope: Scope, class_name: str, packs: Sequence[str], flavour: Flavour) -> str:
    name = f"{flavour.prefix}{class_name}"
    alias = "" if class_name == "Toolkit" else f"\n\n\n{flavour.prefix}Toolkit: TypeAlias = {name}"
    return f"""PACKS: tuple[str, ...] = {literal(tuple(packs))}


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


def _imports(rows: Sequence[Row], scope: Scope, package: str) -> str:
    return "".join(f"    from {import_path(row, package)} import {scope.importedmodel_names(row)}\n" for row in rows)


def _tools(rows: Sequence[Row], scope: Scope, flavour: Flavour) -> str:
    methods = "".join(f"\n{_method(row, scope, flavour)}" for row in rows)
    return f"""class {flavour.prefix}Tools:
    \"\"\"Every tool as a method; nothing else lives here.\"\"\"

    __slots__ = ("_call",)

    def __init__(self, call: {scope(flavour.call)}) -> None:
        self._call = call
{methods}""".rstrip()


def _method(row: Row, scope: Scope, flavour: Flavour) -> str:
    output = scope(f"{row.prefix}Output")
    parameters = "".join(f"        {_parameter(parameter, row, scope)},\n" for parameter in row.parameters)
    signature = f"(\n        self,\n        *,\n{parameters}    )" if parameters else "(self)"
    return f"""    {flavour.define} {row.attribute}{signature} -> {output}:
{docstring(_doc(row), "        ")}
{_return(row, flavour)}
"""


def _return(row: Row, flavour: Flavour) -> str:
    """What a method does, on one line where it fits."""
    given = [f"{literal(parameter.wire)}: {parameter.name}" for parameter in row.parameters]
    start = f"        return {flavour.wait}self._call({literal(row.name)}, {{"
    line = f"{start}{', '.join(given)}}})"
    if len(line) <= _LINE:
        return line
    return f"{start}\n" + "".join(f"            {entry},\n" for entry in given) + "        })"


def _parameter(parameter: Parameter, row: Row, scope: Scope) -> str:
    kind = scope.type_of(parameter, row)
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
