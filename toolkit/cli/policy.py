"""``toolkit policy``: what a policy decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.generated_package import load_tool, parse_arguments, read_arguments
from toolkit.cli.options import Arguments, AsJson, Package, ToolNameArgument, Workspace
from toolkit.cli.report import print_json, print_line, report_errors
from toolkit.errors import SetupError, ToolkitError

policy_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Explain what a policy decides.")


@policy_app.command()
def explain(
    name: ToolNameArgument,
    arguments: Arguments,
    policy: Annotated[
        Path, typer.Option(metavar="FILE", help="Policy file (TOML), outside the workspace.", show_default=False)
    ],
    workspace: Workspace = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Show what a policy decides for one call, and why. Nothing runs.

    Exit code 0 for allow, 1 for ask and deny.
    """
    with report_errors(as_json, spec_mistakes=2):
        module, _ = load_tool(package, name)
        rules = module.SecurityPolicy.load(policy)
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=rules)):
            try:
                verdict = rules.explain(name, parse_arguments(read_arguments(arguments)))
            except ToolkitError as error:
                # There is no decision, and exit code 1 would look like one.
                raise SetupError(str(error)) from None
    if as_json:
        print_json({"decision": verdict.decision, "because": verdict.because})
    else:
        print_line(f"{verdict.decision}: {verdict.because}")
    if verdict.decision != "allow":
        raise typer.Exit(1)
