"""Shows a run as text: its tables, and the goals beside our figures. The tables are Markdown and line up on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.check import Difference
from benchmarks.goals import GOALS, GoalReport
from benchmarks.results import Row, Run, Table


def show_table(part: str, table: Table) -> str:
    """Our rows are bold. A base that all rows share is named once."""
    bases = {row.base for row in table.rows if row.ratio is not None}
    head = ["", "measured", "ratio", *(["to"] if len(bases) > 1 else []), "goal"]
    rows = [_cells(part, table, row, with_base=len(bases) > 1) for row in table.rows]
    notes = [f"Ratio to: {base}." for base in bases if len(bases) == 1] + list(table.notes)
    lines = [f"## {part}: {table.title}", "", *(markdown_table(head, rows) if rows else ()), "", *notes, ""]
    return "\n".join(lines)


def _cells(part: str, table: Table, row: Row, *, with_base: bool) -> list[str]:
    key = f"{part}/{table.name}/{row.label}"
    goal = next((goal.shown_bound for goal in GOALS if goal.row == key), "")
    name = f"**{row.label}**" if row.ours else row.label
    figure = f"{show_number(row.value)} {row.unit}" + (f" ({row.detail})" if row.detail else "")
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    return [name, figure, ratio, *([row.base or ""] if with_base else []), goal]


def show_number(value: float) -> str:
    """About three digits, without powers of ten."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def show_goals(reports: Sequence[GoalReport]) -> str:
    rows = [
        (
            report.goal.what,
            report.goal.before,
            report.goal.shown_bound,
            "-" if report.figure is None else report.goal.shown(report.figure),
            report.verdict,
        )
        for report in reports
    ]
    return "\n".join(markdown_table(("what", "before", "goal", "now", ""), rows))


def show_about(run: Run) -> str:
    return "\n".join(f"{name}: {value}" for name, value in run.about.items())


def show_differences(found: Sequence[Difference]) -> str:
    if not found:
        return "Nothing differs from the committed run by more than the measurements do."
    return "\n".join(map(str, found))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, ["-" * max(3, width) for width in widths], *rows):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
