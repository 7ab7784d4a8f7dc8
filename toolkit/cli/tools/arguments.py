"""Reads the words after the name of a tool: one JSON object or ``-``, and the options of the tool (``tool_options``)."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolkit.cli.options import AsJson, Package, PolicyPath, Workspace
from toolkit.cli.usage import CONTEXT, CliCommand, wrong_usage
from toolkit.errors import InvalidArguments

if TYPE_CHECKING:
    from toolkit.cli.tool_options import ToolOption

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

    Ends the command for ``--help`` and for wrong usage, which text that is not a JSON object is, too.
    """
    from toolkit.cli.tool_options import tool_options

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
    from toolkit.runtime.call.argument_text import parse_arguments
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
    from toolkit.cli.tool_options import example_command

    return f"\b\nExample:\n  {example_command(row)}"
