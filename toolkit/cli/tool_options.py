"""Options of the command line from the schema of a tool: ``--start-line 3`` for the property ``start_line``.

- The option is the name of the property in kebab-case. A property whose option would be one of ours (``--json``) gets the
  prefix ``tool-``; two properties that would share an option keep their own names (``--startLine`` and ``--start_line``).
- Booleans are flags, ``--recursive`` and ``--no-recursive``. The option of a list is repeated, once for each item.
- Text is taken as it is. Anything else is read as JSON: ``--limit 3``, ``--env '{"LANG": "C"}'``.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from toolkit.cli.package import complete_import_names, complete_tool_names
from toolkit.cli.signature import as_shell_word, example_arguments
from toolkit.cli.usage import CONTEXT, CliCommand, wrong_usage
from toolkit.errors import InvalidArguments, nearest
from toolkit.schema.keywords import UNIONS, References, Schema

RESERVED: Final = frozenset({"workspace", "package", "policy", "json", "help"})

_USABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_METAVARS: Final = {"string": "TEXT", "integer": "INTEGER", "number": "NUMBER", "boolean": "BOOLEAN"}
_PATHS: Final = ("read-path", "write-path")
_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "object": (dict,), "array": (list,),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolOption:
    """One property of a tool's input as an option."""

    wire: str
    option: str
    schema: Schema
    types: frozenset[str]
    """The JSON types that the value, or each item of a list, may have; empty if it may be anything."""
    repeated: bool
    required: bool
    taken: frozenset[str]
    """The options of all properties."""

    @property
    def is_flag(self) -> bool:
        return self.types == {"boolean"} and not self.repeated

    @property
    def declaration(self) -> str:
        negative = f"--no-{self.option[2:]}"
        return f"{self.option}/{negative}" if self.is_flag and negative not in self.taken else self.option

    @property
    def metavar(self) -> str:
        item = self.schema.get("items", {}) if self.repeated else self.schema
        if choices := _choices(item):
            return f"[{'|'.join(choices)}]"
        if item.get("x-resource") in _PATHS:
            return "PATH"
        return (
            _METAVARS.get(next(iter(self.types)), "JSON") if len(self.types) == 1 else "VALUE" if self.types else "JSON"
        )

    @property
    def help(self) -> str:
        described = " ".join(str(self.schema.get("description", "")).split())
        default = f"[default: {json.dumps(self.schema['default'])}]" if "default" in self.schema else ""
        notes = ["repeat for each item" if self.repeated else "", "[required]" if self.required else default]
        return "  ".join(part for part in (described, *notes) if part)

    def read(self, given: Any) -> Any:
        """The value of the property from what was typed. Raises ValueError."""
        if self.is_flag:
            return given
        if self.repeated:
            items = self.schema.get("items", {})
            return [_read_value(text, self.types, items if isinstance(items, dict) else {}) for text in given]
        return _read_value(given, self.types, self.schema)


def tool_options(row: Mapping[str, Any]) -> list[ToolOption]:
    """The options of a tool. A property whose name cannot be an option is given in the JSON argument only."""
    schema = row["inputSchema"]
    references = References(schema)
    found = references.follow(schema)
    properties = found.get("properties", {}) if isinstance(found, dict) else {}
    required = found.get("required", ()) if isinstance(found, dict) else ()
    options = _choose_names(list(properties))
    taken = frozenset(options.values())
    return [
        _tool_option(wire, options[wire], properties[wire], references, wire in required, taken)
        for wire in properties
        if wire in options
    ]


def _tool_option(
    wire: str, option: str, node: Any, references: References, required: bool, taken: frozenset[str]
) -> ToolOption:
    schema = _described(node, references)
    types = _types(schema, references, 0) - {"null"}
    repeated = types == {"array"} and isinstance(schema.get("items"), dict)
    if repeated:
        schema = {**schema, "items": _described(schema["items"], references)}
        types = _types(schema["items"], references, 0)
    return ToolOption(wire, option, schema, types, repeated, required, taken)


def example_command(row: Mapping[str, Any]) -> str:
    """A command that calls the tool with its required arguments."""
    words = ["toolkit invoke", as_shell_word(row["name"])]
    options = {option.wire: option for option in tool_options(row)}
    for wire, value in example_arguments(row).items():
        if wire not in options:
            return f"{' '.join(words[:2])} {as_shell_word(example_arguments(row))}"
        option = options[wire]
        if option.is_flag:
            words.append(option.option)
        else:
            words += [f"{option.option} {as_shell_word(item)}" for item in (value if option.repeated else [value])]
    return " ".join(words)


def _choose_names(wires: Sequence[str]) -> dict[str, str]:
    wanted = {wire: _kebab(wire) for wire in wires}
    counts = Counter(wanted.values())
    chosen = {}
    for wire, kebab in wanted.items():
        name = f"tool-{kebab}" if kebab in RESERVED else kebab
        name = wire if counts[kebab] > 1 or name in counts and name != kebab else name
        if _USABLE.fullmatch(name) and name not in RESERVED:
            chosen[wire] = f"--{name}"
    return chosen


def _kebab(wire: str) -> str:
    """
    >>> _kebab("startLine"), _kebab("max_HTTPSize"), _kebab("a b/c")
    ('start-line', 'max-http-size', 'a-b-c')
    """
    words = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3-\2\4", wire)
    return re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-").lower()


def _described(node: Any, references: References) -> Schema:
    """A schema behind its references; a description next to a reference stays."""
    followed = references.follow(node)
    near = node if isinstance(node, dict) else {}
    return (
        {**followed, **{key: near[key] for key in ("description", "default") if key in near}}
        if isinstance(followed, dict)
        else {}
    )


def _types(schema: Any, references: References, depth: int) -> frozenset[str]:
    """The JSON types that a schema names; empty if it names none."""
    schema = references.follow(schema)
    if not isinstance(schema, dict) or depth > 4:
        return frozenset()
    kinds = schema.get("type")
    if kinds is not None:
        return frozenset([kinds] if isinstance(kinds, str) else kinds)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return frozenset(kind for kind in _PYTHON_TYPES for value in values if _is_of(value, kind))
    for word in UNIONS:
        if word in schema:
            found = [_types(option, references, depth + 1) for option in schema[word]]
            return frozenset().union(*found) if all(found) else frozenset()
    return frozenset({"object"}) if "properties" in schema else frozenset()


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and kind == "integer":
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES.get(kind, ()))


def _choices(schema: Schema) -> list[str]:
    values = schema.get("enum", ())
    return list(values) if values and all(isinstance(value, str) for value in values) else []


def _read_value(text: str, types: frozenset[str], schema: Schema) -> Any:
    if choices := _choices(schema):
        if text not in choices:
            raise ValueError(f"{text!r} is not one of {', '.join(choices)}.{nearest(text, choices)}")
        return text
    if types == {"string"}:
        return text
    from toolkit.runtime.arguments import parse_arguments

    try:
        value = parse_arguments(text)
    except InvalidArguments:
        value, is_json = None, False
    else:
        is_json = True
    if is_json and (not types or any(_is_of(value, kind) for kind in types)):
        return value
    if not types or "string" in types:
        return text
    raise ValueError(f"{text!r} is not {_article(types)}")


def _article(types: frozenset[str]) -> str:
    """
    >>> _article(frozenset({"integer"})), _article(frozenset({"object"}))
    ('an integer', 'a JSON object')
    """
    names = {"integer": "an integer", "number": "a number", "boolean": "true or false"}
    return " or ".join(names.get(kind, f"a JSON {kind}") for kind in sorted(types))


# ----------------------------------------------------------------------------------------------------------------------
# Options and arguments that several commands share.

Project = Annotated[
    Path,
    typer.Option(metavar="DIR", help="Project folder. Its pyproject.toml, or one above it, has [tool.toolkit]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ImportNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IMPORT",
        help="Names of imports in the settings. Default: all.",
        show_default=False,
        autocompletion=complete_import_names,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Confirm the commands, addresses and modules of the imports as they are now, without asking."
    ),
]
Package = Annotated[
    str | None,
    typer.Option(
        metavar="PACKAGE",
        help="Generated package to use. Default: this project's, else the built-in tools.",
        show_default=False,
    ),
]
ToolNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOOL",
        help="Name of the tool; `toolkit tools` lists them.",
        show_default=False,
        autocompletion=complete_tool_names,
    ),
]
PolicyPath = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Policy file (TOML), outside the workspace.  [required]", show_default=False),
]
Workspace = Annotated[Path, typer.Option(metavar="DIR", help="Folder that the tool may work in.")]


# ----------------------------------------------------------------------------------------------------------------------
# The words after a tool's name: one JSON object or ``-``, and the tool's options.

GivenArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="JSON | --OPTION VALUE",
        help="Arguments as a JSON object, - to read it from standard input, or the tool's own options:"
        " `toolkit invoke TOOL --help` lists them.",
        show_default=False,
    ),
]
# Options of the tool come after its name; those of the command itself may be anywhere.
SETTINGS: Final = {**CONTEXT, "ignore_unknown_options": True}

_OURS: Final[dict[str, Any]] = {"workspace": Workspace, "package": Package, "as_json": AsJson}
_DEFAULTS: Final[dict[str, Any]] = {"workspace": Path(), "as_json": False}


def parse_tool_arguments(
    row: Mapping[str, Any], given: Sequence[str], context: typer.Context, *, takes_policy: bool = False
) -> dict[str, Any]:
    """The arguments of a call: those of the JSON argument, and over them those of options.

    Ends the command for ``--help`` and for wrong usage, such as text that is not a JSON object.
    """

    options = {f"option_{index}": option for index, option in enumerate(tool_options(row))}
    read: list[dict[str, Any]] = []

    def receive(ctx: typer.Context, text: str | None, **values: Any) -> None:
        found = {}
        for parameter, option in options.items():
            if values.get(parameter) not in (None, []):
                try:
                    found[option.wire] = option.read(values[parameter])
                except ValueError as error:
                    raise wrong_usage(f"Invalid value for '{option.option}': {error}", ctx) from None
        missing = [option for option in options.values() if option.required and option.wire not in found]
        if text is None and missing:
            names = ", ".join(f"'{option.option}'" for option in missing)
            raise wrong_usage(f"Missing option{'s' * (len(missing) > 1)} {names}.", ctx)
        if text is not None and text != "-" and not text.lstrip().startswith(("{", "[", '"')):
            raise wrong_usage(_explain_word(text, list(options.values())), ctx)
        read.append({**({} if text is None else _read_object(text, ctx)), **found})

    ours = {**_OURS, "policy": PolicyPath} if takes_policy else _OURS
    receive.__signature__ = _signature(options, ours)  # type: ignore[attr-defined]
    receive.__annotations__ = {
        parameter.name: parameter.annotation for parameter in inspect.signature(receive).parameters.values()
    }
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=CliCommand, context_settings=CONTEXT, help=_help(row), epilog=_epilog(row))(receive)
    code = app(args=list(given), prog_name=f"{context.command_path} {row['name']}", standalone_mode=False)
    if not read:
        raise typer.Exit(code or 0)
    return read[0]


def _read_object(given: str, context: typer.Context) -> dict[str, Any]:
    """The JSON argument; ``-`` stands for standard input."""
    from toolkit.runtime.arguments import parse_arguments
    from toolkit.schema.problems import kind

    try:
        value = parse_arguments(given if given != "-" else sys.stdin.buffer.read().decode())
    except UnicodeDecodeError as error:
        raise wrong_usage(f"Standard input is not UTF-8 text: {error.reason}", context) from None
    except InvalidArguments as error:
        why = error.message.removesuffix("Send one JSON object.")  # that is for models
        raise wrong_usage(f"Invalid value for 'JSON': {why}Give one JSON object, or options.", context) from None
    if not isinstance(value, dict):
        raise wrong_usage(f"Invalid value for 'JSON': the arguments must be a JSON object, not {kind(value)}", context)
    return value


def _explain_word(text: str, options: Sequence[ToolOption]) -> str:
    """What to write instead of a value without its option."""
    first = next((option for option in options if option.required), options[0] if options else None)
    write = "" if first is None else f"; write {first.option} {shlex.quote(text)}"
    return f"'{text}' is not a JSON object{write}."


def _signature(options: Mapping[str, Any], ours: Mapping[str, Any]) -> inspect.Signature:
    """The tool's options first, then ours: those were read already, and stand here for ``--help`` and suggestions."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    text = Annotated[
        str | None,
        typer.Argument(metavar="JSON", help="Arguments as a JSON object, or - for standard input.", show_default=False),
    ]
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        inspect.Parameter("text", keyword, annotation=text, default=None),
    ]
    for name, option in options.items():
        kind: Any = bool | None if option.is_flag else list[str] | None if option.repeated else str | None
        metavar = None if option.is_flag else option.metavar
        declared = typer.Option(option.declaration, metavar=metavar, help=option.help, show_default=False)
        parameters.append(inspect.Parameter(name, keyword, annotation=Annotated[kind, declared], default=None))
    for name, annotation in ours.items():
        parameters.append(inspect.Parameter(name, keyword, annotation=annotation, default=_DEFAULTS.get(name)))
    return inspect.Signature(parameters)


def _help(row: Mapping[str, Any]) -> str:
    return " ".join(str(row["description"]).split())


def _epilog(row: Mapping[str, Any]) -> str:

    return f"\b\nExample:\n  {example_command(row)}"
