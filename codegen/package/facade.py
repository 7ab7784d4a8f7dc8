"""``facade.py`` and ``async_facade.py``: the toolkit classes, with a typed method and a typed `invoke` for every tool."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit.codegen.package.literals import docstring, literal
from toolkit.codegen.package.modules import header, import_path, model_imports, model_names, render_message_union
from toolkit.codegen.package.rows import SHARED_NAMES, Parameter, Row
from toolkit.codegen.schema.document import RICH
from toolkit.codegen.settings import ProfileSettings

if TYPE_CHECKING:
    from toolkit.codegen.package.profiles import PlannedProfile


@dataclass(frozen=True, slots=True)
class Flavour:
    """What differs between the two facades."""

    prefix: str
    runner: str
    call: str
    define: str
    wait: str
    word: str


SYNC = Flavour("", "Runner", "CallTool", "def", "", "")
ASYNC = Flavour("Async", "AsyncRunner", "CallToolAsync", "async def", "await ", "async_")


@dataclass(frozen=True, slots=True)
class Surface:
    """What differs between the toolkit with all tools and those of profiles."""

    class_name: str
    profile: ProfileSettings | None = None

    @property
    def tools(self) -> str:
        return "Tools" if self.profile is None else f"{self.profile.stem}Tools"

    @property
    def context(self) -> str:
        return "ToolkitContext" if self.profile is None else f"{self.profile.stem}Context"

    @property
    def message(self) -> str:
        return "AnyToolMessage" if self.profile is None else f"{self.profile.stem}ToolMessage"

    @property
    def imports(self) -> tuple[str, str]:
        """Where context and message come from, for checkers."""
        if self.profile is None:
            return "    from .context import ToolkitContext\n", "    from .unions import AnyToolMessage\n"
        return (
            f"    from .{self.profile.module} import {self.context}, {self.message}, {self.profile.stem}ToolNames\n",
            "",
        )


_BUILTINS: Final = ("bool", "dict", "float", "int", "list", "str")
_LINE: Final = 120
_WHY_IGNORED: Final = """\
# mypy: ignore-errors
# Why: mypy compares every overload with every other, which takes half a minute for 1,000 tools.
"""


class _FacadeNames:
    """How the names of a facade module are written inside its class of tools.

    A tool's method hides a module-level name that is equal to its own. Such a name is imported with a leading underscore,
    which no tool has; a hidden builtin type is written through ``builtins``.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.methods = {row.attribute for row in rows}
        names = Counter(name for row in rows for name in (*model_names(row), *row.imports))
        self._ambiguous = {name for name, count in names.items() if count > 1}
        hidden = {word: f"_{word}" for word in SHARED_NAMES if word in self.methods}
        self._hidden = hidden | {word: f"{self.spell('builtins')}.{word}" for word in _BUILTINS if word in self.methods}

    def spell(self, name: str) -> str:
        return f"_{name}" if name in self.methods else name

    def spell_nested(self, row: Row, name: str) -> str:
        """A nested type of one tool. Tool ``get`` with an object ``args`` and tool ``get_args`` share such a name."""
        return f"_{row.attribute}_{name}" if name in self._ambiguous else self.spell(name)

    def spell_type(self, parameter: Parameter, row: Row) -> str:
        """The type of a parameter, with every hidden name spelled another way."""
        changed = self._hidden
        if not (self._ambiguous.isdisjoint(row.imports) and self.methods.isdisjoint(row.imports)):
            nested = {word: self.spell_nested(row, word) for word in row.imports}
            changed = changed | {word: other for word, other in nested.items() if word != other}
        used = any(_has_word(word, parameter.type) for word in changed)
        return _rename_in(parameter.type, changed) if used else parameter.type

    def list_imports(self, names: Sequence[str], body: str) -> str:
        """Those of ``names`` that ``body`` uses, as an import statement lists them."""
        used = sorted(name for name in names if _has_word(self.spell(name), body))
        return ", ".join(map(_import_as, used, map(self.spell, used)))

    def list_models(self, row: Row) -> str:
        """The models of a tool, as an import statement lists them."""
        spelled = {name: self.spell_nested(row, name) for name in row.imports}
        spelled |= {name: self.spell(name) for name in model_names(row)}
        return ", ".join(_import_as(name, spelled[name]) for name in sorted(spelled))


def _has_word(word: str, text: str) -> bool:
    """Most words are not in the text at all, and looking for them without a pattern is fifty times as fast."""
    return word in text and re.search(rf"\b{word}\b", text) is not None


def _import_as(name: str, spelled: str) -> str:
    return name if name == spelled else f"{name} as {spelled}"


class Facade:
    """Writes one facade module: a class with a method for each tool, the toolkit class, and the function that makes it."""

    def __init__(
        self, rows: Sequence[Row], package: str, surface: Surface, packs: Sequence[str], flavour: Flavour
    ) -> None:
        self._rows = rows
        self._package = package
        self._surface = surface
        self._packs = packs
        self._flavour = flavour
        self._names = _FacadeNames(rows)

    def render(self) -> str:
        names, profile = self._names, self._surface.profile
        body = self._body()
        context_import, message_import = self._surface.imports
        invoke = f"{self._flavour.prefix}{self._surface.class_name}Invoke"
        own = "" if profile is None else f"from .{profile.module} import {profile.constant}\n"
        title = "The typed async Toolkit." if self._flavour is ASYNC else "The typed Toolkit."
        alias = names.spell("builtins")
        has_builtins = f"{alias}." in body and re.search(rf"\b{alias}\.", body)
        builtins = f"import {_import_as('builtins', alias)}\n" if has_builtins else ""
        typing = names.list_imports(["Any", "Literal"], body)
        # Used outside the class of tools, where no method hides them.
        unhidden = "".join(f", {name}" for name in ("TypeAlias", "overload") if re.search(rf"(: |@){name}\b", body))
        support = (
            names.list_imports([self._flavour.call, "OMIT", "Omit", *RICH.values()], body)
            + f", PackSource, {self._flavour.runner}, send_only_given"
        )
        of_overloads = ("ArgsOfNoTool", "NameOfNoTool", "ToolMessage") if self._rows else ()
        checked = ", ".join(sorted(["DynamicContext", "JsonObjectForUnknownName", *of_overloads]))
        models = "".join(
            f"    from {import_path(row, self._package)} import {names.list_models(row)}\n" for row in self._rows
        )
        return f"""{_WHY_IGNORED}{header(title)}
{builtins}from collections.abc import Iterable
from typing import TYPE_CHECKING{f", {typing}" if typing else ""}{unhidden}

from toolkit.generated_support import {support}

from .catalog import CATALOG
{own}
if TYPE_CHECKING:
    from toolkit.generated_support import {checked}

{context_import}{models}    from .signatures import {invoke} as _Invoke
{message_import}
{body}"""

    def _body(self) -> str:
        surface, flavour, profile = self._surface, self._flavour, self._surface.profile
        name, tools = f"{flavour.prefix}{surface.class_name}", f"{flavour.prefix}{surface.tools}"
        has_alias = profile is None and surface.class_name != "Toolkit"
        alias = f"\n\n\n{flavour.prefix}Toolkit: TypeAlias = {name}" if has_alias else ""
        factory = f"create_{flavour.word}{'agent' if profile is None else profile.name}_toolkit"
        if profile is None:
            about = (
                "A toolkit for a workspace and a policy. `packs` provide the handlers, and may add code-first tools."
            )
        else:
            about = f"A toolkit of the profile {profile.name!r}. The policy of the context can only narrow it further."
        return f"""PACKS: tuple[str, ...] = {literal(tuple(self._packs))}


{self._tools(tools)}


class {name}({flavour.runner}):
    \"\"\"Runs every tool by name: `invoke` with a literal name returns that tool's output type.\"\"\"
{self._profile_members()}
    @property
    def tools(self) -> {tools}:
        \"\"\"Every tool as a method with keyword arguments.\"\"\"
        return self._tools_of({tools})

    if TYPE_CHECKING:
        _invoke_by_signature: _Invoke  # with the mypy plugin, this takes the place of `invoke`
{self._invoke()}

        {flavour.define} execute_raw(self, name: str, text: str) -> {surface.message}:
            \"\"\"`invoke` for arguments as the JSON text a model wrote.\"\"\"
            return {flavour.wait}self._execute_raw(name, text)

    else:
        invoke = {flavour.runner}._invoke
        execute_raw = {flavour.runner}._execute_raw{alias}


def {factory}(
    context: {surface.context} | DynamicContext, *, packs: Iterable[PackSource | str] = PACKS
) -> {name}:
    \"\"\"{about}\"\"\"
    return {name}(CATALOG, context, packs)
"""

    def _profile_members(self) -> str:
        profile = self._surface.profile
        if profile is None:
            return ""
        return f"""
    _profile = {profile.constant}

    @property
    def tool_names(self) -> {profile.stem}ToolNames:
        \"\"\"The names of the tools that this profile may ever call.\"\"\"
        return {profile.constant}.tools
"""

    # -- a method for each tool --------------------------------------------------------------------------------------

    def _tools(self, class_name: str) -> str:
        methods = "".join(f"\n{self._method(row)}" for row in self._rows)
        return f"""@send_only_given
class {class_name}:
    \"\"\"Every tool as a method, and nothing else.\"\"\"

    __slots__ = ("_call",)

    def __init__(self, call: {self._names.spell(self._flavour.call)}) -> None:
        self._call = call
{methods}""".rstrip()

    def _method(self, row: Row) -> str:
        output = self._names.spell(f"{row.prefix}Output")
        parameters = "".join(f"        {self._parameter(parameter, row)},\n" for parameter in row.parameters)
        signature = f"(\n        self,\n        *,\n{parameters}    )" if parameters else "(self)"
        given = [f"{literal(parameter.wire)}: {parameter.name}" for parameter in row.parameters]
        start = f"        return {self._flavour.wait}self._call({literal(row.name)}, {{"
        call = f"{start}{', '.join(given)}}})"
        if len(call) > _LINE:
            call = f"{start}\n" + "".join(f"            {entry},\n" for entry in given) + "        })"
        return f"""    {self._flavour.define} {row.attribute}{signature} -> {output}:
{docstring(_doc(row), "        ")}
{call}
"""

    def _parameter(self, parameter: Parameter, row: Row) -> str:
        kind = self._names.spell_type(parameter, row)
        if parameter.required:
            return f"{parameter.name}: {kind}"
        if parameter.default is not None:
            return f"{parameter.name}: {kind} = {parameter.default}"
        return f"{parameter.name}: {kind} | {self._names.spell('Omit')} = {self._names.spell('OMIT')}"

    # -- ``invoke`` --------------------------------------------------------------------------------------------------

    def _invoke(self) -> str:
        """The overloads, in the order in which checkers report a call that fits none in the fewest and best words.

        Mypy reports the first, which is there for that only (see ``NameOfNoTool``). Pyright reports the last of those that
        have only wrong arguments, and completes keys from it: that of the named tool; with an unknown name, the dynamic one.

        Pyright compares a call with every overload, so a thousand tools make it slow. One generic overload would be no way
        out: it turns ``invoke(name, json.loads(text))`` into a ``ToolMessage[Any, Any]`` for mypy. Use a profile, or the
        methods.
        """
        define, wait = self._flavour.define, self._flavour.wait
        dynamic = f"{define} invoke(self, name: str, args: JsonObjectForUnknownName) -> {self._surface.message}:"
        doc = '            """Runs a tool by name: resolve, policy, validate, run, message. Raises `ToolkitError`."""'
        if not self._rows:
            return f"        {dynamic}\n{doc}\n            return {wait}self._invoke(name, args)"
        any_type = self._names.spell("Any")
        # Its `Any` is the type of a wrong call, so that nothing else is reported about it.
        unmatched = f"{define} invoke(self, name: NameOfNoTool, args: ArgsOfNoTool) -> {any_type}:"
        overloads = [f"        @overload\n        {head} ..." for head in (unmatched, dynamic)]
        overloads += map(self._overload, self._rows)
        body = f"        {define} invoke(self, name: {any_type}, args: {any_type}) -> {any_type}:"
        return "\n".join([*overloads, "", body, doc, f"            return {wait}self._invoke(name, args)"])

    def _overload(self, row: Row) -> str:
        spell = self._names.spell
        kind = f"{spell('Literal')}[{literal(row.name)}]"
        models = f"{spell(row.prefix + 'Input')} | {spell(row.prefix + 'Args')}"
        return f"""        @overload
        {self._flavour.define} invoke(
            self, name: {kind}, args: {models}
        ) -> ToolMessage[{kind}, {spell(row.prefix + "Output")}]: ..."""


def _doc(row: Row) -> str:
    lines = [row.description.strip() or f"Runs the tool {row.name!r}."]
    described = [(p.name, " ".join(p.description.split())) for p in row.parameters if p.description]
    if described:
        lines += ["", *(f":param {name}: {words}" for name, words in described)]
    return "\n".join(lines)


def _rename_in(source: str, spelled: dict[str, str]) -> str:
    """The type expression with its names replaced by those of the table; strings inside a Literal stay."""

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(spelled.get(node.id, node.id))

    return ast.unparse(Rename().visit(ast.parse(source, mode="eval")))


# ----------------------------------------------------------------------------------------------------------------------
# ``signatures.py``: what each tool takes and returns, as the mypy plugin ``toolkit.mypy`` reads it.


@dataclass(frozen=True, slots=True)
class ToolkitSignatures:
    """The tools of one toolkit class, and the union of their messages: its module in the package, and its name."""

    class_name: str
    rows: Sequence[Row]
    module: str
    message: str


def render_signatures(tables: Sequence[ToolkitSignatures], package: str) -> str:
    """The module, with a table for each toolkit class; the keys of a table are the names on the wire."""
    rows = sorted({row.name: row for table in tables for row in table.rows}.values(), key=lambda row: row.name)
    models = model_imports(rows, package, ("Args", "Input", "Output"))
    messages = "\n".join(f"    from .{table.module} import {table.message}" for table in tables)
    texts = "\n".join(map(_table, tables))
    return f"""{header("What each tool takes and returns, for the mypy plugin `toolkit.mypy`.")}
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import TypedDict

    from toolkit.generated_support import Invoke, InvokeAsync, JsonObject, Signature

{f"{models}{chr(10)}" if rows else ""}{messages}

{texts}"""


def _table(table: ToolkitSignatures) -> str:
    class_name = table.class_name
    entries = "".join(f"            {literal(row.name)}: {_signature(row)},\n" for row in table.rows)
    tools = f"{{\n{entries}        }}" if table.rows else "{}"
    return f"""\
    {class_name}Tools = TypedDict(
        "{class_name}Tools",
        {tools},
    )

    class {class_name}Signatures:
        tools: {class_name}Tools
        known_at_run_time: Signature[JsonObject, {table.message}]

    {class_name}Invoke: TypeAlias = Invoke[{class_name}Signatures]
    Async{class_name}Invoke: TypeAlias = InvokeAsync[{class_name}Signatures]
"""


def _signature(row: Row) -> str:
    return f"Signature[{row.prefix}Input | {row.prefix}Args, {row.prefix}Output]"


# ----------------------------------------------------------------------------------------------------------------------
# The modules of a profile: its names, types and policy, and its two toolkits.


def render_profile(profile: PlannedProfile, package: str, packs: Sequence[str]) -> dict[str, str]:
    """The files of one profile."""
    module, surface = profile.settings.module, Surface(f"{profile.settings.stem}Toolkit", profile.settings)
    return {
        f"{module}.py": _render_types(profile, package),
        f"{module}_facade.py": Facade(profile.rows, package, surface, packs, SYNC).render(),
        f"{module}_async_facade.py": Facade(profile.rows, package, surface, packs, ASYNC).render(),
    }


def profile_signatures(profile: PlannedProfile) -> ToolkitSignatures:
    """The table of one profile for the mypy plugin."""
    stem = profile.settings.stem
    return ToolkitSignatures(f"{stem}Toolkit", profile.rows, profile.settings.module, f"{stem}ToolMessage")


def _render_types(profile: PlannedProfile, package: str) -> str:
    stem, rows = profile.settings.stem, profile.rows
    literals = [f"Literal[{literal(row.name)}]" for row in rows]
    union = "    from typing import Union\n\n" if len(rows) > 1 else ""
    return f"""{header(f"The profile {profile.settings.name!r}: its tools, its types and its policy.", future=False)}
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolkit import generated_support as support

{stem}ToolName: TypeAlias = Literal[{", ".join(literal(row.name) for row in rows)}]
{stem}ToolNames: TypeAlias = tuple[{", ".join(literals)}]
{stem}Rule: TypeAlias = support.Rule[{stem}ToolName]
{stem}Policy: TypeAlias = support.SecurityPolicy[{stem}ToolName]
{stem}Context: TypeAlias = support.ToolkitContext[{stem}ToolName]

if TYPE_CHECKING:
{union}    from toolkit.generated_support import ToolMessage

{model_imports(rows, package, ("Output",))}

    {stem}ToolMessage: TypeAlias = {render_message_union(rows)}
else:
    {stem}ToolMessage = support.ToolMessage

{profile.settings.constant}: Final[support.Profile[{stem}ToolNames]] = support.Profile(
    {literal(profile.settings.name)},
    {literal(tuple(row.name for row in rows))},
    {_render_policy(profile)},
)
"""


def _render_policy(profile: PlannedProfile) -> str:
    policy = profile.policy
    rules = "".join(
        "            support.Rule[str](" + ", ".join(f"{key}={literal(value)}" for key, value in rule.items()) + "),\n"
        for rule in policy.get("rules", ())
    )
    parts = [f"default={literal(policy.get('default', 'deny'))}", f"tools={literal(policy.get('tools', {}))}"]
    parts += [f"rules=[\n{rules}        ]"] if rules else []
    return "support.SecurityPolicy[str](\n" + "".join(f"        {part},\n" for part in parts) + "    )"
