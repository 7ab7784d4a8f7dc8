"""The measured part of docs/comparison.md: one call and one import in each toolkit, from a run."""

from __future__ import annotations

from typing import Final

from benchmarks.results import Run, Table
from benchmarks.show import markdown_table, show_number

TABLES: Final = (("calls", "text"), ("imports", "import"))
START: Final = "<!-- measured -->\n"
END: Final = "<!-- end of measured -->"


def show_comparison(run: Run) -> str:
    """The tables in which peers stand, and the versions that were measured."""
    tables = [table for part, name in TABLES for table in run.parts.get(part, []) if table.name == name]
    versions = f"Measured {run.about['date']} with Python {run.about['python']}: {run.about['versions']}."
    return "\n\n".join([*map(_show, tables), versions])


def _show(table: Table) -> str:
    """Our rows are bold. Rows without a ratio are differences, which have no peers."""
    rows = sorted((row for row in table.rows if row.ratio is not None), key=lambda row: row.value)
    cells = [
        (f"**{row.label}**" if row.ours else row.label, f"{show_number(row.value)} {row.unit}", f"{row.ratio:.2f}")
        for row in rows
    ]
    base = next(row.base for row in rows)
    lines = markdown_table(("", "measured", "ratio"), cells)
    return "\n".join([f"### {table.title}", "", *lines, "", f"Ratio to: {base}."])


def put_comparison(page: str, run: Run) -> str:
    """The page with the tables of this run."""
    head, _, rest = page.partition(START)
    return f"{head}{START}{show_comparison(run)}\n{END}{rest.partition(END)[2]}"
