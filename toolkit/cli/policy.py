"""``toolkit policy``: check a policy file, show what it decides, list what is remembered, and learn a policy from use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
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
    print_text,
    report_errors,
    show_waiting,
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
from toolkit.visible import escape_hidden

if TYPE_CHECKING:
    from toolkit.cli.report import Style
    from toolkit.guard.policy.policy import BoundRule, SecurityPolicy, Verdict
    from toolkit.runtime.audit.learning import Lost, SeenCall, SeenCalls

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
    help="Check policy files, show what they decide, and learn them from use.",
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
    """List or revoke remembered approvals.

    Lists what is always remembered in a workspace: its id, when and for which agent it was approved, and what it covers.
    Running toolkits notice at their next call that something was revoked. What is remembered for a session ends with it.
    """
    from toolkit.runtime.remembered import RememberedApprovals
    from toolkit.user_state import identify_folder

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


@policy_app.command(
    cls=CliCommand,
    epilog=examples(
        "toolkit policy learn audit.jsonl > policy.toml", "toolkit policy learn audit.jsonl --policy old.toml"
    ),
)
def learn(
    logs: Annotated[
        list[Path], typer.Argument(metavar="AUDIT", help="Audit logs of calls to learn from.", show_default=False)
    ],
    files: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Allow a directory if calls used so many files in it. Not the workspace."
        ),
    ] = 3,
    profile: Annotated[str, typer.Option(metavar="NAME", help="Name of the profile that is suggested.")] = "learned",
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Policy that was in force. Its deny and ask rules stay, and what it allowed in addition is listed.",
            show_default=False,
        ),
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Also learn from logs whose chain is broken.")
    ] = False,
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Propose a policy from audit logs.

    Prints the smallest policy file under which every call in the logs has the verdict that it had. Its comments say which
    calls were judged again with it, what could not be used, and what became impossible. It allows what was seen and no
    more: real paths, exact commands, hosts. Review it before you use it.

    Exit code 1 if a call would get another verdict.
    """
    from toolkit.cli.audit import refuse_unreadable
    from toolkit.runtime.audit.learning import SeenCalls, find_lost, judge_again, learn_policy
    from toolkit.runtime.audit.verification import read_records, verify
    from toolkit.runtime.toolkit import core_of

    with report_errors(as_json, spec_mistakes=2), ExitStack() as stack, show_waiting("learning"):
        module = load_package(package)
        folder = Path(stack.enter_context(TemporaryDirectory()))
        (folder / "workspace").mkdir()

        def open_core(rules: Any) -> Any:
            return core_of(
                stack.enter_context(module.create_agent_toolkit(module.ToolkitContext(folder / "workspace", rules)))
            )

        def load_core(text: str) -> Any:
            (folder / "policy.toml").write_text(text, encoding="utf-8")
            return open_core(module.SecurityPolicy.load(folder / "policy.toml"))

        before = open_core(
            module.SecurityPolicy(default="allow") if policy is None else module.SecurityPolicy.load(policy)
        )
        seen = SeenCalls()
        for log in logs:
            problems = verify(refuse_unreadable(log)).problems
            if problems and not unverified:
                raise SetupError(
                    f"{log}: {problems[0]}; nothing was learned from a log that may have been tampered with"
                    " (`toolkit audit verify` lists what is wrong)"
                )
            seen.read(read_records(log), before)
        kept = [] if policy is None else [rule for rule in before.policy.rules if rule.decision != "allow"]

        def judge(text: str, calls: Sequence[SeenCall]) -> list[Verdict]:
            return judge_again(load_core(text), calls)

        learned = learn_policy(seen.calls, before, judge, kept=kept, min_files=files)
        text = learned.as_toml()
        after = load_core(text)
        judged = list(zip(seen.calls, judge_again(after, seen.calls), strict=True))
        different = [(call, verdict) for call, verdict in judged if call.decision != verdict.decision]
        lost = find_lost(before, after)
        if as_json:
            rows = [_describe_difference(call, verdict) for call, verdict in different]
            impossible = {"tools": lost.tools, "permissions": lost.permissions}
            found = {"calls": len(judged), "different": rows, "lacking": seen.lacking, "impossible": impossible}
            print_json({"policy": text, "profile": learned.profile(profile), **found})
        else:
            lines = _describe_learning(judged, different, seen, lost, learned.profile(profile), policy is not None)
            print_text(f"{text}\n{_comment(lines)}")
    raise typer.Exit(1 if different else 0)


def _describe_difference(call: SeenCall, verdict: Verdict) -> dict[str, Any]:
    from toolkit.runtime.audit.learning import explain_difference

    why = explain_difference(call)
    return {"call": call.id, "tool": call.tool, "then": call.decision, "now": verdict.decision, "why": why}


def _describe_learning(
    judged: Sequence[tuple[SeenCall, Verdict]],
    different: Sequence[tuple[SeenCall, Verdict]],
    seen: SeenCalls,
    lost: Lost,
    profile: str,
    has_old_policy: bool,
) -> Iterator[str]:
    """What is said about a policy that was learned, line by line."""
    same = len(judged) - len(different)
    yield f"Judged again with this policy: {count(len(judged), 'call')}, {same} with the same verdict."
    numbers = Counter((call.tool, call.decision, verdict.decision) for call, verdict in judged)
    wide = max((len(tool) for tool, _, _ in numbers), default=0)
    for (tool, then, now), number in sorted(numbers.items()):
        yield f"  {tool:<{wide}}  {number:>6}  {f'{then}, as before' if then == now else f'{now}, was {then}'}"
    for call, verdict in different[:_MAX_DIFFERENT]:
        row = _describe_difference(call, verdict)
        yield f"Different: {call.tool} at {call.time[:19]}: {row['now']}, was {row['then']}, because {row['why']}."
    if len(different) > _MAX_DIFFERENT:
        yield f"Different: {len(different) - _MAX_DIFFERENT} more; --json lists all."
    for reason, number in sorted(seen.lacking.items()):
        yield f"Not used: {count(number, 'call')}, because they {reason}."
    yield ""
    yield f"No longer possible: {', '.join(lost.tools) or 'no tool'}; other paths, commands and hosts than those above."
    if lost.permissions:
        yield f"Permissions that no tool above needs: {', '.join(lost.permissions)}."
    yield ""
    if not has_old_policy:
        yield "A log does not have the rules of its policy. Give that policy with --policy, to keep its deny and ask rules."
        yield ""
    yield "A profile with these tools, for pyproject.toml:"
    yield from profile.splitlines()


_MAX_DIFFERENT = 20


def _comment(lines: Iterable[str]) -> str:
    """The lines as comments of the policy. Nothing that a log says can add a line to it."""
    return "".join(f"# {escape_hidden(line)}".rstrip() + "\n" for line in lines).rstrip("\n")
