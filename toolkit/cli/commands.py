"""The command line ``toolkit``: every command is declared once and listed here.

Exit codes: 0 success, 1 findings (a stale package, a mistake in a spec, a tool that failed), 2 wrong usage or set-up,
70 an error that nobody expected, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli import generate
from toolkit.cli.audit import audit_app
from toolkit.cli.init import init
from toolkit.cli.package import InvokeCommand
from toolkit.cli.policy import policy_app
from toolkit.cli.report import print_line
from toolkit.cli.serve import playground, serve
from toolkit.cli.tool_options import SETTINGS
from toolkit.cli.tools import describe, invoke, list_tools
from toolkit.cli.usage import CONTEXT, CliCommand, CliGroup, examples

app = typer.Typer(
    cls=CliGroup, context_settings=CONTEXT, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from toolkit import __version__

        print_line(__version__)
        raise typer.Exit


@app.callback(epilog=examples("toolkit init shop", "toolkit tools", "toolkit invoke read_file --path README.md"))
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Statically typed tools for LLM agents.

    \b
    Exit codes: 0 success, 1 findings or a failed tool, 2 wrong usage or set-up,
    70 an unexpected error (TOOLKIT_DEBUG=1 shows where), 130 interrupted.
    """


app.command(cls=CliCommand, epilog=examples("toolkit init shop", "cd shop && mypy --strict . && pytest"))(init)
app.command(cls=CliCommand, name="import", epilog=examples("toolkit import", "toolkit import github --trust"))(
    generate.import_specs
)
app.command(cls=CliCommand, epilog=examples("toolkit generate", "toolkit generate --project services/agent"))(
    generate.generate
)
app.command(cls=CliCommand, epilog=examples("toolkit check", "toolkit check --live --allow compatible"))(generate.check)
app.command(cls=CliCommand, epilog=examples("toolkit lint", "toolkit lint acme/tools/add.yaml --target openai"))(
    generate.lint
)
app.command(
    cls=CliCommand, name="tools", epilog=examples("toolkit tools", "toolkit tools file", "toolkit tools --json | jq")
)(list_tools)
app.command(cls=CliCommand, epilog=examples("toolkit describe read_file"))(describe)
app.command(
    cls=InvokeCommand,
    context_settings=SETTINGS,
    add_help_option=False,
    epilog=examples(
        "toolkit invoke read_file --path README.md --max-lines 20",
        'toolkit invoke read_file \'{"path": "README.md"}\' --json',
        "toolkit invoke read_file --help",
    ),
)(invoke)
app.command(
    cls=CliCommand,
    epilog=examples(
        "toolkit serve --workspace . --preset read-only",
        "toolkit serve --policy ../policy.toml --http 127.0.0.1:8123",
    ),
)(serve)
app.command(
    cls=CliCommand,
    epilog=examples(
        "toolkit playground --preset read-only", "toolkit playground --policy ../policy.toml --workspace src"
    ),
)(playground)
app.add_typer(policy_app, name="policy")
app.add_typer(audit_app, name="audit")
