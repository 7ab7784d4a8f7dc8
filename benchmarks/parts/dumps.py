"""A plain dump, and a constructor call with absent fields, compared with a pydantic model of the same fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from pydantic import BaseModel

from benchmarks.results import Table, compared
from benchmarks.timing import least_cpu
from toolkit.schema.models import Omissible, ToolModel

BASE = "pydantic"


class Plain(BaseModel):
    query: str
    limit: int = 10
    tags: list[str] | None = None
    mode: str | None = None


class WithOmissible(ToolModel):
    query: str
    limit: int = 10
    tags: Omissible[list[str]] = None
    mode: Omissible[str] = None


class WithNullable(ToolModel):
    query: str
    limit: int = 10
    tags: list[str] | None = None
    mode: str | None = None


class WithSchema(WithOmissible):
    __enforced__: ClassVar[str] = '{"maxProperties": 3}'


CLASSES: dict[str, type[BaseModel]] = {
    BASE: Plain,
    "optional fields that forbid null": WithOmissible,
    "optional fields that may be null": WithNullable,
    "a schema beyond types": WithSchema,
}


def measure(*, full: bool) -> Iterator[Table]:
    made = {name: model.model_validate({"query": "x", "limit": 3}) for name, model in CLASSES.items()}
    ways: dict[str, dict[str, Callable[[], object]]] = {
        "model_dump()": {name: one.model_dump for name, one in made.items()},
        "model_dump_json()": {name: one.model_dump_json for name, one in made.items()},
        "the constructor": {name: _constructor(model) for name, model in CLASSES.items()},
    }
    for way, contenders in ways.items():
        best = least_cpu(contenders, rounds=15 if full else 1)
        yield Table(way, f"Tool models: {way}", compared(best, BASE, "ns"))


def _constructor(model: type[BaseModel]) -> Callable[[], object]:
    return lambda: model(query="x", limit=3)
