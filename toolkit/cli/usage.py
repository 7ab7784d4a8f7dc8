"""How the commands are run: help in colour, wrong usage with a suggestion and the way to the help."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from toolkit.cli.report import print_error, print_help, print_json, render_help, report_interrupt
from toolkit.errors import find_near_miss

# Typer does not export it. Every wrong command, option or value is one.
_UsageError: Final[Any] = typer.BadParameter.__base__

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def examples(*commands: str) -> str:
    """The end of a help page."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def run(app: typer.Typer) -> int:
    """Runs the command line, and returns the exit code."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        return report_interrupt()
    except _UsageError as error:
        return _report_usage(error)
    if code == 130:  # how typer reports Ctrl-C
        return report_interrupt()
    return code if isinstance(code, int) else 0


def wrong_usage(message: str, context: typer.Context) -> Exception:
    """An error for ``raise``: the message is shown with the usage of the command."""
    error: Exception = _UsageError(message, context)
    return error


def show_help(context: typer.Context) -> None:
    print_help(TyperCommand.get_help(context.command, context))


def _report_usage(error: Any) -> int:
    context = error.ctx
    if type(error).__name__ == "NoArgsIsHelpError":
        show_help(context)
        return 2
    message = _message(error, context)
    if "--json" in sys.argv:  # whatever is wrong, the options were perhaps not read
        print_json({"error": message})
        return 2
    lines = [] if context is None else [context.get_usage(), f"Try '{context.command_path} --help' for help."]
    print_error(message, *(line for text in lines for line in text.splitlines()))
    return 2


def _message(error: Any, context: Any) -> str:
    name = getattr(error, "option_name", None)
    if name is None or context is None or not hasattr(error, "possibilities"):
        text = str(error.format_message()).replace("Value error, ", "")
        return re.sub(r"^Got unexpected extra argument(?:s|\(s\))? \((.*)\)$", r"Unexpected argument: \1", text)
    known = [option for parameter in context.command.get_params(context) for option in parameter.opts]
    # Compared without the dashes, which would make every short name resemble every other.
    close = find_near_miss(name.lstrip("-"), [option[2:] for option in known if option.startswith("--")])
    return f"No such option '{name}'." + (f" Did you mean '--{close}'?" if close else "")


class _PlainHelp:
    """What help pages of commands and groups share: no Python types after arguments, examples at the margin, colours."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece[1:-1] if piece.startswith("{") and piece.endswith("}") else piece for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        own: Any = self
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in own.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            if (record := parameter.get_help_record(ctx)) is not None:
                name = record[0].partition(" <")[0] if is_argument else record[0]
                records["Arguments" if is_argument else "Options"].append((name, record[1]))
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        own: Any = self
        if own.epilog:
            formatter.write_paragraph()
            formatter.write_text(own.epilog)

    def get_help(self, ctx: Any) -> str:
        return render_help(super().get_help(ctx))  # type: ignore[misc]


class CliCommand(_PlainHelp, TyperCommand):
    """A command."""


class CliGroup(_PlainHelp, TyperGroup):
    """A group of commands."""
