"""``toolkit policy``: check a policy file, show what it decides, and list the approvals that are remembered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli.package import load_package, load_tool
from toolkit.cli.report import (
    DECISION_STYLES,
    Styled,
    count,
    print_json,
    print_line,
    print_styled,
    print_table,
    report_errors,
)
from toolkit.cli.tool_options import (
    SETTINGS,
    AsJson,
    GivenArguments,
    Package,
    PolicyPath,
    ToolNameArgument,
    Workspace,
    parse_tool_arguments,
)
from toolkit.cli.usage import CONTEXT, CliCommand, CliGroup, examples, show_help
from toolkit.errors import SetupError, ToolkitError

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import Verdict

_FILE = """\b
A policy file (TOML):
  default = "deny"              # what no rule and no entry below decides

\b
  [tools]
  read_file = "allow"
  bash = "ask"

\b
  [[rules]]
  decision = "deny"             # deny is final, then ask, then allow
  path = "secrets/**"           # or command = "git log", host = "*.example.org"
  justification = "keys stay here"
"""

policy_app = typer.Typer(
    cls=CliGroup,
    context_settings=CONTEXT,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check a policy file, and show what it decides.",
    epilog=_FILE,
)

PolicyFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Policy file (TOML).", show_default=False)]


@policy_app.command(name="check", cls=CliCommand, epilog=examples("toolkit policy check policy.toml"))
def check_policy(file: PolicyFileArgument, package: Package = None, as_json: AsJson = False) -> None:
    """Find mistakes in a policy file.

    Checks keys, decisions, globs, examples and the names of tools. Exit code 2 if there is a mistake.
    """
    with report_errors(as_json, spec_mistakes=2):
        module = load_package(package)
        policy = module.SecurityPolicy.load(file)
        with TemporaryDirectory() as workspace, module.create_agent_toolkit(module.ToolkitContext(workspace, policy)):
            pass  # a toolkit checks the names of tools, and whether they touch what rules are about
    if as_json:
        print_json({"default": policy.default, "tools": len(policy.tools), "rules": len(policy.rules)})
    else:
        listed = f"{count(len(policy.tools), 'tool')}, {count(len(policy.rules), 'rule')}"
        print_line(f"{file}: no mistakes; {listed}, default {policy.default}")


@policy_app.command(
    cls=CliCommand,
    context_settings=SETTINGS,
    add_help_option=False,
    epilog=examples("toolkit policy explain read_file --path src/a.py --policy ../policy.toml"),
)
def explain(
    context: typer.Context,
    name: ToolNameArgument,
    arguments: GivenArguments = None,
    policy: PolicyPath = None,
    workspace: Workspace = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Show what a policy decides for one call, and why.

    Shows the verdict, the line that decides, and what else was considered. Nothing runs.

    Exit code 0 for allow, 1 for ask and deny. The arguments of the call are given as for `toolkit invoke`.
    """
    if name in ("--help", "-h"):
        show_help(context)
        return
    with report_errors(as_json, spec_mistakes=2):
        module, row = load_tool(package, name)
        given = parse_tool_arguments(row, arguments or (), context, takes_policy=True)
        if policy is None:
            raise SetupError("no policy file was given; add --policy FILE")
        rules = module.SecurityPolicy.load(policy)
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=rules)):
            try:
                verdict = rules.explain(name, given)
            except ToolkitError as error:
                # There is no decision, and exit code 1 would look like one.
                raise SetupError(str(error)) from None
    if as_json:
        print_json(_as_data(verdict))
    else:
        _print_verdict(verdict)
    if verdict.decision != "allow":
        raise typer.Exit(1)


def _as_data(verdict: Verdict) -> dict[str, Any]:
    considered = [
        {"place": one.place, "decision": one.decision, "rule": one.text, "outcome": one.outcome}
        for one in verdict.considered
    ]
    place = next((one.place for one in verdict.considered if one.outcome == "decides"), None)
    return {"decision": verdict.decision, "because": verdict.because, "place": place, "considered": considered}


def _print_verdict(verdict: Verdict) -> None:
    print_styled(Styled(verdict.decision, DECISION_STYLES[verdict.decision]), f": {verdict.because}")
    if len(verdict.considered) == 1 and verdict.considered[0].place:
        print_line(f"  at {verdict.considered[0].place}; no rule of the policy is about this tool")
        return
    print_line("considered, in this order:")
    rows = (
        (
            Styled(one.outcome, "bold" if one.outcome == "decides" else "dim"),
            Styled(one.decision, DECISION_STYLES[one.decision]),
            one.place or "",
            one.text,
        )
        for one in verdict.considered
    )
    print_table(("", "", "", ""), rows, indent=2)


@policy_app.command(
    cls=CliCommand,
    epilog=examples("toolkit policy remembered", "toolkit policy remembered --workspace app --revoke 1f3a09c2"),
)
def remembered(
    workspace: Workspace = Path(),
    revoke: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Forget this one; `all` forgets all. Repeat for others.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the approvals that are always remembered in a workspace, or revoke some.

    Each line says what it is called, when and by which agent it was asked for, and what it covers. A toolkit that runs
    notices at its next call. What is remembered for a session ends with it, and is not listed.
    """
    from toolkit.guard.user_state import identify_folder
    from toolkit.runtime.remembered import RememberedApprovals

    with report_errors(as_json, spec_mistakes=2):
        try:
            place = str(workspace.resolve(strict=True)), identify_folder(str(workspace))
        except OSError as error:
            raise SetupError(f"the workspace {str(workspace)!r} cannot be opened: {error.strerror}") from None
        kept = RememberedApprovals(place, [place[0]])
        found = kept.read()
        if revoke:
            _refuse_unknown_ids(revoke, [one.id for one in found], workspace)
            found = kept.revoke(None if _ALL in revoke else revoke)
    if as_json:
        rows = [{key: value for key, value in asdict(one).items() if key not in ("key", "scope")} for one in found]
        print_json({"workspace": place[0], "revoked" if revoke else "approvals": rows})
        return
    if found:
        cells = [(one.id, one.time[:19].replace("T", " "), one.agent, one.covers) for one in found]
        print_table(("id", "time", "agent", "covers"), cells)
    if revoke:
        print_line(f"{count(len(found), 'approval')} revoked; you are asked again")
    elif not found:
        print_line(f"no approvals are remembered in {place[0]}")


_ALL = "all"


def _refuse_unknown_ids(given: list[str], known: list[str], workspace: Path) -> None:
    unknown = next((id for id in given if id != _ALL and id not in known), None)
    if unknown is not None:
        raise SetupError(
            f"no approval that is remembered in {str(workspace)!r} has the id {unknown!r}; run `toolkit policy remembered`"
            " for the ids"
        )
