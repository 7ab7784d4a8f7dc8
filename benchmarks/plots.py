"""Draws a run as PNG files: calls and imports beside the peers, and the growth curves. Only ``make bench`` has matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from benchmarks.results import Row, Run, Table

OURS: Final = "#1f6feb"
OTHERS: Final = "#9aa4b2"
CURVE_COLOURS: Final = (OURS, "#d97706", "#15803d")
DOTS_PER_INCH: Final = 100
COLOURS: Final = 48
"""Enough for text and lines; the files in docs/ stay small."""
CURVES: Final = (("generation", "tools"), ("growth", "arguments"), ("growth", "outputs"), ("growth", "at once"))


def draw_all(run: Run, folder: Path) -> Iterator[Path]:
    """One file for each picture whose rows were measured."""
    folder.mkdir(parents=True, exist_ok=True)
    if calls := run.table("calls", "text"):
        yield draw_bars(calls, "One call, as a multiple of bare pydantic-core", folder / "calls.png")
    if imports := run.table("imports", "import"):
        yield draw_bars(imports, "Importing, as a multiple of pydantic's import", folder / "imports.png")
    tables = [table for part, name in CURVES if (table := run.table(part, name))]
    if tables:
        yield draw_curves(tables, folder / "growth.png")


def draw_bars(table: Table, title: str, file: Path) -> Path:
    """The ratios on a logarithmic axis, the smallest on top."""
    rows = sorted((row for row in table.rows if row.ratio), key=lambda row: row.ratio or 0, reverse=True)
    figure, axes = _figure(1, 1, (9, 0.6 + 0.3 * len(rows)))
    bars = axes.barh([row.name for row in rows], [row.ratio for row in rows], color=[_colour(row) for row in rows])
    axes.bar_label(bars, [f"{row.ratio:.1f}x" for row in rows], padding=3, fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_plain_number)
    axes.set_xlim(right=4 * max(row.ratio or 1 for row in rows))
    axes.tick_params(labelsize=8)
    axes.set_title(f"{title} (blue: ours)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return _save(figure, file)


def draw_curves(tables: Sequence[Table], file: Path) -> Path:
    """One picture for each table, logarithmic on both axes: a straight line that rises by one decade in one is linear."""
    figure, grid = _figure(2, 2, (10, 7.5))
    for axes, table in zip(grid.flat, tables, strict=False):
        colours = iter(CURVE_COLOURS)
        for name in dict.fromkeys(row.name for row in table.rows):
            rows = [row for row in table.rows if row.name == name]
            colour = next(colours) if rows[0].ours else OTHERS
            points = [row.at for row in rows], [row.value for row in rows]
            axes.plot(*points, marker="o", markersize=4, color=colour, label=f"{name}, {rows[0].unit}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(_plain_number)
            axis.set_minor_formatter("")
        values = [row.value for row in table.rows]
        axes.set_ylim(10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values))))
        axes.set_title(table.title, fontsize=10)
        axes.set_xlabel(table.axis, fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    for axes in grid.flat[len(tables) :]:
        axes.set_visible(False)
    return _save(figure, file)


def _colour(row: Row) -> str:
    return OURS if row.ours else OTHERS


def _plain_number(value: float, position: int) -> str:
    """On an axis, without powers of ten."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    return figure, figure.subplots(rows, columns)


def _save(figure: Any, file: Path) -> Path:
    """With few colours and without a date or the version of matplotlib."""
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn)
    picture = Image.open(drawn).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True)
    return file
