"""``toolkit audit``: check an audit log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.options import AsJson
from toolkit.cli.report import print_json, print_line, report_errors
from toolkit.errors import SetupError

audit_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check an audit log.")

AuditFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="Audit log, as given to ToolkitContext(audit=...).", show_default=False)
]


@audit_app.command()
def verify(
    log: AuditFile,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HEAD",
            help="Output of an earlier `toolkit audit head`; finds records missing at the end, too.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find records that were changed, removed or inserted. Exit with code 1 if there are any."""
    from toolkit.runtime.audit.log import AuditHead, verify

    with report_errors(as_json, spec_mistakes=2):
        report = verify(_refuse_unreadable(log), None if head is None else AuditHead.parse(head))
    if as_json:
        found = {"head": str(report.head), "open_calls": report.open_calls, "problems": report.problems}
        print_json({"records": report.head.lines, **found})
    else:
        for problem in report.problems:
            print_line(problem)
        open_calls = f", calls without an end record: {report.open_calls}" if report.open_calls else ""
        verdict = f"{len(report.problems)} problems" if report.problems else "the chain is intact"
        print_line(f"{log}: {report.head.lines} records, {verdict}{open_calls}")
    raise typer.Exit(1 if report.problems else 0)


@audit_app.command(name="head")
def print_head(log: AuditFile, as_json: AsJson = False) -> None:
    """Print the number of records and the hash of the last one. Keep the output elsewhere."""
    from toolkit.runtime.audit.log import verify

    with report_errors(as_json, spec_mistakes=2):
        report = verify(_refuse_unreadable(log))
    if as_json:
        print_json({"head": str(report.head)})
    else:
        print_line(str(report.head))


def _refuse_unreadable(log: Path) -> Path:
    try:
        with log.open("rb"):
            return log
    except OSError as error:
        raise SetupError(f"{str(log)!r} cannot be read: {error.strerror}") from None
