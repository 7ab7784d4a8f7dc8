"""What a run of the benchmarks found, as data: rows in tables, by part. It is written as JSON and read again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One figure. ``ratio`` is the value divided by that of the row or thing named by ``base``.

    ``at`` is the place on the axis of a growth curve; rows of one name form a curve. ``ours`` is False for what we are
    compared with: peers, limits, plain Python. ``tolerance`` is for rows that vary more between runs than their part does.
    """

    name: str
    value: float
    unit: str
    ratio: float | None = None
    base: str | None = None
    at: float | None = None
    ours: bool = True
    detail: str = ""
    tolerance: float | None = None

    @property
    def label(self) -> str:
        return self.name if self.at is None else f"{self.name}, {self.at:,.0f}"


@dataclass(frozen=True)
class Table:
    """Rows that are read together. A growth curve names its ``axis``."""

    name: str
    title: str
    rows: tuple[Row, ...]
    axis: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_growth(self) -> bool:
        return bool(self.axis)


@dataclass(frozen=True)
class Run:
    """Everything that one run measured: the machine, and the tables of each part."""

    about: Mapping[str, str]
    parts: dict[str, list[Table]] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Each row with the key that goals and the comparison use: part, table, row."""
        for part, tables in self.parts.items():
            for table in tables:
                for row in table.rows:
                    yield f"{part}/{table.name}/{row.label}", row

    def table(self, part: str, name: str) -> Table | None:
        return next((table for table in self.parts.get(part, []) if table.name == name), None)

    def write(self, file: Path, **more: object) -> None:
        """As JSON; ``more`` is for readers of the file, and not read again."""
        file.parent.mkdir(parents=True, exist_ok=True)
        parts = {part: [_table_as_json(table) for table in tables] for part, tables in self.parts.items()}
        file.write_text(json.dumps({"about": dict(self.about), **more, "parts": parts}, indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> Run:
        data = json.loads(file.read_text())
        return cls(
            data["about"], {part: [_read_table(one) for one in tables] for part, tables in data["parts"].items()}
        )


def compared(
    values: Mapping[str, float], base: str, unit: str, *, others: Collection[str] = (), at: float | None = None
) -> tuple[Row, ...]:
    """A row for each value, with its ratio to that of ``base``. ``others`` are not ours; the base never is."""
    return tuple(
        Row(name, value, unit, value / values[base], base, at, name != base and name not in others)
        for name, value in values.items()
    )


def by_curve(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of each growth curve next to each other, in the order in which they were measured."""
    return tuple(sorted(rows, key=lambda row: row.name))


def _table_as_json(table: Table) -> dict[str, Any]:
    """Without the fields that say nothing, and with four digits: the committed run stays readable."""
    rows = []
    for row in table.rows:
        kept = {name: value for name, value in asdict(row).items() if value is not None and value != ""}
        kept |= {name: float(f"{kept[name]:.4g}") for name in ("value", "ratio") if name in kept}
        rows.append(kept)
    return {"name": table.name, "title": table.title, "axis": table.axis, "notes": list(table.notes), "rows": rows}


def _read_table(data: dict[str, Any]) -> Table:
    rows = tuple(Row(**row) for row in data["rows"])
    return Table(data["name"], data["title"], rows, data["axis"], tuple(data["notes"]))
