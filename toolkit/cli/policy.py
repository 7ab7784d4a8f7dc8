"""``toolkit policy``: check a policy file, and show what it decides."""

from __future__ import annotations

import json
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
    from collections.abc import Iterable

    from toolkit.cli.report import Style
    from toolkit.guard.policy.policy import BoundRule, SecurityPolicy, Verdict

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
  path = "secrets/**"           # or command = "git log *", host = "*.example.org"
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

_HOW_STYLES: dict[str, Style] = {"kernel": "green", "cannot bind": "magenta", "-": "dim"}

PolicyFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Policy file (TOML).", show_default=False)]


@policy_app.command(name="check", cls=CliCommand, epilog=examples("toolkit policy check policy.toml"))
def check_policy(file: PolicyFileArgument, package: Package = None, as_json: AsJson = False) -> None:
    """Find mistakes in a policy file.

    Checks keys, decisions, globs, examples and the names of tools. Exit code 2 if there is a mistake.
    """
    with report_errors(as_json, spec_mistakes=2):
        policy, bound = _read_bound(file, package)  # a toolkit checks the names of tools, and what rules are about
    unbound = _unbound(bound)
    if as_json:
        counts = {"default": policy.default, "tools": len(policy.tools), "rules": len(policy.rules)}
        print_json({**counts, "unbound": unbound})
    else:
        listed = f"{count(len(policy.tools), 'tool')}, {count(len(policy.rules), 'rule')}"
        print_line(f"{file}: no mistakes; {listed}, default {policy.default}")
        _print_unbound(unbound)


@policy_app.command(cls=CliCommand, epilog=examples("toolkit policy show policy.toml"))
def show(file: PolicyFileArgument, package: Package = None, as_json: AsJson = False) -> None:
    """Show where each rule holds: rule by door.

    kernel: the sandbox enforces it, whatever runs. checked: we check it before or while a call runs.
    -: it means nothing there. cannot bind: it does not hold there; the lines below the table say the way out.

    The first rows are limits that do not come from the policy. Commands are those of this machine's sandbox.
    """
    with report_errors(as_json, spec_mistakes=2):
        _, bound = _read_bound(file, package)
    doors = list(bound[0].doors)
    if as_json:
        rows = [
            {"place": row.place, "rule": row.text, **{door: row.doors[door].how for door in doors}} for row in bound
        ]
        print_json({"rules": rows, "unbound": _unbound(bound)})
        return
    print_table(
        (*doors, "rule"),
        (
            (*(Styled(row.doors[door].how, _HOW_STYLES.get(row.doors[door].how)) for door in doors), row.text)
            for row in bound
        ),
    )
    _print_unbound(_unbound(bound))


def _read_bound(file: Path, package: str | None) -> tuple[SecurityPolicy[Any], tuple[BoundRule, ...]]:
    """The policy of a file, and where its rules hold in a toolkit of the package."""
    module = load_package(package)
    policy = module.SecurityPolicy.load(file)
    with TemporaryDirectory() as workspace, module.create_agent_toolkit(module.ToolkitContext(workspace, policy)):
        return policy, policy.bindings()


def _unbound(bound: Iterable[BoundRule]) -> list[str]:
    found = [binding.unbound for row in bound for binding in row.doors.values()]
    return list(dict.fromkeys(sentence for sentences in found for sentence in sentences.values()))


def _print_unbound(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print_styled(Styled("cannot bind", "magenta"), f": {sentence}")


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
    exact = {} if verdict.exact_rule is None else {"exact_rule": verdict.exact_rule}
    return {
        "decision": verdict.decision,
        "because": verdict.because,
        "place": place,
        "considered": considered,
        "unbound": verdict.unbound,
        **exact,
    }


def _print_verdict(verdict: Verdict) -> None:
    print_styled(Styled(verdict.decision, DECISION_STYLES[verdict.decision]), f": {verdict.because}")
    if verdict.exact_rule is not None:
        print_line(f"  to allow exactly this: command = {json.dumps(verdict.exact_rule, ensure_ascii=False)}")
    if len(verdict.considered) == 1 and verdict.considered[0].place:
        print_line(f"  at {verdict.considered[0].place}; no rule of the policy is about this tool")
        _print_unbound(verdict.unbound)
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
    _print_unbound(verdict.unbound)
