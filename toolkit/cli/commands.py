"""The command line ``toolkit``: every command is declared once and listed here.

Exit codes: 0 success, 1 findings (a stale package, a mistake in a spec, a tool that failed), 2 wrong usage.
"""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli import generate, tools
from toolkit.cli.audit import audit_app
from toolkit.cli.policy import policy_app
from toolkit.cli.report import print_line

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        from toolkit import __version__

        print_line(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Statically typed tools for LLM agents.

    Exit codes: 0 success, 1 findings or a failed tool, 2 wrong usage.
    """


app.command()(generate.generate)
app.command()(generate.check)
app.command(name="import")(generate.import_specs)
app.command()(generate.lint)
app.command(name="tools")(tools.list_tools)
app.command()(tools.describe)
app.command()(tools.invoke)
app.add_typer(policy_app, name="policy")
app.add_typer(audit_app, name="audit")
