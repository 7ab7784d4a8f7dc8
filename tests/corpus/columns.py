"""The columns of ``make corpus`` about generated code: one row of ``COLUMNS`` for each, with its goal.

A column is a function that looks at one tool and returns a count and what it is a part of. To add a column, write such a
function and add its row. Figures of tools are added; a column with ``most`` shows the largest count instead.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from tests.corpus.instances import Instance
from tests.corpus.oracle import Oracle
from toolkit.codegen.lint import schema_findings
from toolkit.codegen.package.python_names import camel
from toolkit.runtime.call.reader import Reader
from toolkit.spec.model import ToolSpec


@dataclass(frozen=True)
class MeasuredModel:
    """The input or the output of a tool: its schema, its model, and values with the verdict of JSON Schema."""

    schema: Any
    model: type[BaseModel]
    instances: Sequence[Instance]


@dataclass(frozen=True)
class MeasuredTool:
    """A tool, the text of its model module, and its models."""

    spec: ToolSpec
    text: str
    models: Sequence[MeasuredModel]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """The classes of the module, those of ``XArgs`` left out: they repeat the input."""
        found = [node for node in ast.parse(self.text).body if isinstance(node, ast.ClassDef)]
        return [node for node in found if ast.unparse(node.bases[0]) != "TypedDict"]

    @cached_property
    def annotations(self) -> list[ast.expr]:
        """The annotation of each field."""
        members = [member for node in self.classes for member in node.body if isinstance(member, ast.AnnAssign)]
        return [member.annotation for member in members if not ast.unparse(member.target).startswith("__")]


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

    def measure(self, tool: MeasuredTool) -> None:
        for column in COLUMNS:
            count, of = column.measure(tool)
            self.by_column.setdefault(column.name, Figure()).add(Figure(count, of, count))

    def add(self, other: Figures) -> None:
        for name, figure in other.by_column.items():
            self.by_column.setdefault(name, Figure()).add(figure)

    def value(self, column: Column) -> float:
        figure = self.by_column.get(column.name, Figure())
        if column.shows == "share":
            return 100 * figure.count / figure.of if figure.of else 0.0
        return figure.most if column.shows == "most" else figure.count

    def missed(self) -> list[str]:
        """The goals that are not met."""
        return [
            f"{column.name}: {_show(self.value(column), column)}, goal {column.goal}"
            for column in COLUMNS
            if column.name in self.by_column and not column.met(self.value(column))
        ]


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


def _show(value: float, column: Column) -> str:
    return f"{value:.2f} %" if column.shows == "share" else str(int(value))


# -- one tool ----------------------------------------------------------------------------------------------------------


def fields(tool: MeasuredTool) -> tuple[int, int]:
    return len(tool.annotations), len(tool.annotations)


def bare_any(tool: MeasuredTool) -> tuple[int, int]:
    """Fields whose whole type is ``Any``."""
    found = [_without_wrapper(node) for node in tool.annotations]
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in found), len(found)


def any_inside(tool: MeasuredTool) -> tuple[int, int]:
    """Fields whose type holds ``Any`` somewhere: items, values, branches."""
    inside = [node for node in tool.annotations if "Any" in _names(node)]
    return len(inside) - bare_any(tool)[0], len(tool.annotations)


def _without_wrapper(node: ast.expr) -> ast.expr:
    """``X`` for ``Omissible[X]``, ``Annotated[X, ...]`` and ``X | None``."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Omissible", "Annotated"):
        inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return _without_wrapper(inner)
    if isinstance(node, ast.BinOp) and ast.unparse(node.right) == "None":
        return _without_wrapper(node.left)
    return node


def _names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def losses_reported(tool: MeasuredTool) -> tuple[int, int]:
    """Findings of ``toolkit lint`` about the schemas."""
    return sum(1 for _ in schema_findings(tool.spec)), 0


_HASH: Final = re.compile(r"X[0-9a-f]{6}(?![a-z])")


def hash_names(tool: MeasuredTool) -> tuple[int, int]:
    return sum(_HASH.search(node.name) is not None for node in tool.classes), len(tool.classes)


def longest_name(tool: MeasuredTool) -> tuple[int, int]:
    """With the name of the tool, which is ``X`` in the measured module."""
    longer = len(camel(tool.spec.wire_name)) - 1
    return max((len(node.name) + longer for node in tool.classes), default=0), 0


def dumps_that_read_back(tool: MeasuredTool) -> tuple[int, int]:
    """Accepted values whose plain ``model_dump_json()`` is accepted again, by the model and by JSON Schema."""
    results = [
        _reads_back(each, instance.value)
        for each in tool.models
        for instance in each.instances
        if instance.verdict.accepted and not instance.made_by.endswith("python name")
    ]
    judged = [result for result in results if result is not None]
    return sum(judged), len(judged)


def _reads_back(each: MeasuredModel, value: Any) -> bool | None:
    """None for a value that the model refuses, which other columns count."""
    reader = Reader(each.model)
    try:
        model = reader.from_wire(value)
    except ValidationError:
        return None
    dumped = json.loads(model.model_dump_json())
    try:
        reader.from_wire(dumped)
    except ValidationError:
        return False
    return Oracle(each.schema).verdict(dumped).accepted is not False


COLUMNS: Final = (
    Column("fields", fields),
    Column("Any", bare_any),
    Column("Any inside", any_inside),
    Column("losses reported", losses_reported),
    Column("hash names", hash_names, "share", "under 0.5 %", lambda share: share < 0.5),
    Column("longest name", longest_name, "most"),
    Column("dumps read back", dumps_that_read_back, "share", "100 %", lambda share: share == 100),
)
