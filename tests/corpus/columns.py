"""The columns of ``make corpus`` about generated code: one row of ``COLUMNS`` for each, with its goal.

A column is a function that looks at one tool and returns a count and what it is a part of. To add a column, write such a
function and add its row. Figures of tools are added; a column with ``most`` shows the largest count instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import BaseModel

from tests.corpus.instances import Instance
from tests.corpus.plain_dumps import ReadBack, read_back_instances
from tests.corpus.static_meaning import StaticMeaning, read_types
from tests.corpus.type_names import GOAL_HASHES, NestedTypes, types_of_spec
from toolkit.codegen.lint import schema_findings
from toolkit.codegen.schema.document import Document
from toolkit.schema.spec import ToolSpec


@dataclass(frozen=True)
class MeasuredModel:
    """The input or the output of a tool: its schema, flat and as a model, and values with the verdict of JSON Schema."""

    word: str
    """``inputSchema`` or ``outputSchema``."""
    schema: Any
    document: Document
    model: type[BaseModel]
    instances: Sequence[Instance]


@dataclass(frozen=True)
class MeasuredTool:
    """A tool and its models."""

    key: str
    spec: ToolSpec
    models: Sequence[MeasuredModel]

    @cached_property
    def types(self) -> NestedTypes:
        return types_of_spec(self.spec)

    @cached_property
    def meaning(self) -> StaticMeaning:
        found = StaticMeaning(tools=1)
        for each in self.models:
            found.add(read_types(each.schema, each.document, each.model))
        found.unreported = [f"{self.key}: {text}" for text in found.unreported]
        return found

    @cached_property
    def dumps(self) -> ReadBack:
        found = ReadBack()
        for each in self.models:
            found.add(read_back_instances(each.schema, each.model, each.instances, f"{self.key} {each.word}"))
        return found


Measure = Callable[[MeasuredTool], tuple[int, int]]


@dataclass(frozen=True)
class Column:
    """One column. ``total`` shows the count, ``share`` the count as a percentage, ``most`` the largest count."""

    name: str
    measure: Measure
    shows: Literal["total", "share", "most"] = "total"
    goal: str = ""
    met: Callable[[float], bool] = lambda value: True


@dataclass(slots=True)
class Figure:
    """What one column comes to for some tools; figures can be added."""

    count: int = 0
    of: int = 0
    most: int = 0

    def add(self, other: Figure) -> None:
        self.count, self.of, self.most = self.count + other.count, self.of + other.of, max(self.most, other.most)


@dataclass(slots=True)
class Figures:
    """The figures of all columns, by name."""

    by_column: dict[str, Figure] = field(default_factory=dict)
    meaning: StaticMeaning = field(default_factory=StaticMeaning)
    failures: list[str] = field(default_factory=list)
    """What a goal of 100 % is missed by, each with its tool."""

    def measure(self, tool: MeasuredTool) -> None:
        for column in COLUMNS:
            count, of = column.measure(tool)
            self.by_column.setdefault(column.name, Figure()).add(Figure(count, of, count))
        self.meaning.add(tool.meaning)
        self.failures += [*tool.meaning.unreported, *tool.dumps.failures]

    def add(self, other: Figures) -> None:
        for name, figure in other.by_column.items():
            self.by_column.setdefault(name, Figure()).add(figure)
        self.meaning.add(other.meaning)
        self.failures += other.failures

    def value(self, column: Column) -> float | None:
        """None for a share of nothing."""
        figure = self.by_column.get(column.name, Figure())
        if column.shows == "share":
            return 100 * figure.count / figure.of if figure.of else None
        return figure.most if column.shows == "most" else figure.count

    def missed(self) -> list[str]:
        """The goals that are not met, and by what."""
        goals = [
            f"{column.name}: {_show(value, column)}, goal {column.goal}"
            for column in COLUMNS
            if (value := self.value(column)) is not None and not column.met(value)
        ]
        return [*goals, *self.failures]


def table(figures: dict[str, Figures]) -> list[str]:
    """One line for each title, and the goals below."""
    rows = [["file", *(column.name for column in COLUMNS)]]
    rows += [[title, *(_show(found.value(column), column) for column in COLUMNS)] for title, found in figures.items()]
    rows.append(["goal", *(column.goal for column in COLUMNS)])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))])
        for first, *rest in rows
    ]


def _show(value: float | None, column: Column) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} %" if column.shows == "share" else str(int(value))


def reasons(meaning: StaticMeaning) -> list[str]:
    """How many fields hold ``Any`` and how many places say less than their schema, by the reason."""
    rows = [(str(reason), meaning.any_by_reason[reason], meaning.losses[reason]) for reason in _reasons(meaning)]
    return [
        f"{'fields':>6} {'losses':>7}  reason for Any, or for a type that says less than its schema",
        *(f"{count:>6} {losses:>7}  {reason or 'NOT REPORTED'}" for reason, count, losses in rows),
    ]


def _reasons(meaning: StaticMeaning) -> list[str]:
    """All reasons, the most frequent first."""
    names = {*meaning.any_by_reason, *meaning.losses}
    return sorted(names, key=lambda name: (-meaning.any_by_reason[name], -meaning.losses[name], name))


# -- one tool ----------------------------------------------------------------------------------------------------------


def fields(tool: MeasuredTool) -> tuple[int, int]:
    return tool.meaning.fields, tool.meaning.fields


def fields_with_any(tool: MeasuredTool) -> tuple[int, int]:
    """Fields whose type is ``Any``, or holds it somewhere: items, values, branches."""
    return tool.meaning.fields_with_any, tool.meaning.fields


def losses(tool: MeasuredTool) -> tuple[int, int]:
    """Places where the types say less than the schema."""
    found = sum(len(each.document.losses) for each in tool.models) + len(tool.meaning.unreported)
    return found, found


def losses_reported(tool: MeasuredTool) -> tuple[int, int]:
    """Those of the losses for which ``toolkit lint`` has a finding at their place."""
    findings = [f"{finding.pointer}/" for finding in schema_findings(tool.spec)]
    places = [
        f"{tool.spec.pointer}/{each.word}{pointer}/" for each in tool.models for _, pointer in each.document.losses
    ]
    reported = sum(any(finding.startswith(place) for finding in findings) for place in places)
    return reported, losses(tool)[0]


def nested_types(tool: MeasuredTool) -> tuple[int, int]:
    return len(tool.types.names), len(tool.types.names)


def hash_names(tool: MeasuredTool) -> tuple[int, int]:
    return tool.types.hashed, len(tool.types.names)


def longest_name(tool: MeasuredTool) -> tuple[int, int]:
    return tool.types.longest, 0


def dumps_that_read_back(tool: MeasuredTool) -> tuple[int, int]:
    """Accepted values for which every plain dump of the model is accepted again and reads as the same value."""
    return tool.dumps.same, tool.dumps.dumped


def _is_all(share: float) -> bool:
    return share == 100


COLUMNS: Final = (
    Column("fields", fields),
    Column("with Any", fields_with_any),
    Column("losses", losses),
    Column("losses reported", losses_reported, "share", "100 %", _is_all),
    Column("nested types", nested_types),
    Column("hash names", hash_names, "share", f"under {100 * GOAL_HASHES} %", lambda share: share < 100 * GOAL_HASHES),
    Column("longest name", longest_name, "most"),
    Column("dumps read back", dumps_that_read_back, "share", "100 %", _is_all),
)
