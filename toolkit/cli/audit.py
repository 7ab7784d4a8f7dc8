"""``toolkit audit``: check an audit log, and read it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.cli.report import (
    DECISION_STYLES,
    Styled,
    count,
    print_json,
    print_line,
    print_styled,
    print_table,
    report_errors,
    show_waiting,
)
from toolkit.cli.tool_options import AsJson
from toolkit.cli.usage import CONTEXT, CliCommand, CliGroup, examples
from toolkit.errors import SetupError

audit_app = typer.Typer(
    cls=CliGroup,
    context_settings=CONTEXT,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check an audit log, and read it.",
)

LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="Audit log, as given to ToolkitContext(audit=...).", show_default=False)
]


@audit_app.command(
    cls=CliCommand,
    epilog=examples(
        "toolkit audit verify audit.jsonl", 'toolkit audit verify audit.jsonl --head "$(cat elsewhere/head)"'
    ),
)
def verify(
    log: LogFile,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HEAD",
            help="Output of an earlier `toolkit audit head`; also finds records missing at the end.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find records that were changed, removed or inserted. Exit with code 1 if there are any."""
    from toolkit.runtime.audit.verification import AuditHead, verify

    with report_errors(as_json, spec_mistakes=2), show_waiting(f"reading {log}"):
        report = verify(refuse_unreadable(log), None if head is None else AuditHead.parse(head))
    if as_json:
        found = {"head": str(report.head), "open_calls": report.open_calls, "problems": report.problems}
        print_json({"records": report.head.lines, "removed": report.removed, **found})
    else:
        for problem in report.problems:
            print_line(f"{log}: {problem}")
        open_calls = f", calls without an end record: {report.open_calls}" if report.open_calls else ""
        wrong = len(report.problems)
        verdict = Styled(count(wrong, "problem"), "red") if wrong else Styled("the chain is intact", "green")
        removed = f", in older files that are not there: {report.removed}" if report.removed else ""
        print_styled(f"{log}: {count(report.head.lines, 'record')}, ", verdict, open_calls, removed)
    raise typer.Exit(1 if report.problems else 0)


@audit_app.command(name="head", cls=CliCommand, epilog=examples("toolkit audit head audit.jsonl > head"))
def print_head(log: LogFile, as_json: AsJson = False) -> None:
    """Print the number of records and the hash of the last one. Keep the output elsewhere."""
    from toolkit.runtime.audit.verification import verify

    with report_errors(as_json, spec_mistakes=2), show_waiting(f"reading {log}"):
        report = verify(refuse_unreadable(log))
    if as_json:
        print_json({"head": str(report.head)})
    else:
        print_line(str(report.head))


@audit_app.command(
    cls=CliCommand, epilog=examples("toolkit audit show audit.jsonl", "toolkit audit show audit.jsonl --tool bash")
)
def show(
    log: LogFile,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only calls of this tool.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the calls in a log, and the programs that made some of them.

    Each line says when, which tool, what was decided, how long it took and how it ended. With --json: the records as they
    are, starts and ends. The chain is not checked; `toolkit audit verify` does that.
    """
    from toolkit.runtime.audit.log import join_records
    from toolkit.runtime.audit.verification import read_records

    with report_errors(as_json, spec_mistakes=2), show_waiting(f"reading {log}"):
        records = [one for one in read_records(refuse_unreadable(log)) if tool is None or one.get("tool") == tool]
    if as_json:
        print_json(records)
        return
    calls = join_records(records)
    print_table(("time", "tool", "decision", "duration", "outcome"), map(_cells, calls))
    if not calls:
        print_line("no calls")


def _cells(call: Mapping[str, Any]) -> tuple[str | Styled, ...]:
    decision, outcome = str(call.get("decision") or "-"), str(call.get("outcome") or "no end record")
    took = call.get("duration_ms")
    reason = f": {call['reason']}" if call.get("reason") else ""
    answer = f" ({call['answer']})" if call.get("answer") else ""
    return (
        str(call.get("time", ""))[:19].replace("T", " "),
        Styled(_shown_tool(call), "cyan"),
        Styled(f"{decision}{answer}", DECISION_STYLES.get(decision)),
        f"{took:,.0f} ms" if isinstance(took, int | float) else "-",
        Styled(f"{outcome}{reason}", "green" if outcome in ("ok", "started") else "red"),
    )


def _shown_tool(call: Mapping[str, Any]) -> str:
    """The tool of a call, with its line if a program made it; or the program itself."""
    if call.get("event") == "program":
        return "program"
    line = f" (line {call['line']})" if call.get("program") else ""
    return f"{call.get('tool') or '-'}{line}"


def refuse_unreadable(log: Path) -> Path:
    try:
        with log.open("rb"):
            return log
    except OSError as error:
        raise SetupError(f"{log}: cannot be read: {error.strerror}") from None
