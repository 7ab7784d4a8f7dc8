"""Compares generated models with JSON Schema: both judge the instances of a spec, and the models dump them again."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from tests.corpus.columns import Figures, MeasuredModel, MeasuredTool
from tests.corpus.instances import Instance, instances
from tests.corpus.specs import outcome, rows
from tests.modules import load_module
from toolkit.runtime.arguments import Reader
from toolkit.runtime.output import json_writer
from toolkit.schema import same_json
from toolkit.schema.models import ToolModel

ARGUMENTS: Final = "arguments that are not an object are refused"
DECIDED: Final[dict[str, str]] = {
    ARGUMENTS: "a schema without a type accepts 7, but the arguments of a call are an object: the call path refuses 7 earlier",
}
"""The kinds of difference that we keep, each with the reason."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value on which the two differ: the kind of difference, and enough to reproduce it."""

    sort: str
    key: str
    schema: Any
    made_by: str
    value: Any
    seen: str

    def __str__(self) -> str:
        return f"{self.sort}: {self.key} {json.dumps(self.value)[:300]} ({self.made_by}) -> {self.seen[:300]}"


@dataclass(slots=True)
class Tally:
    """The result of measuring some specs; tallies can be added."""

    specs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    judged: int = 0
    dumped: int = 0
    unjudged: int = 0
    differences: list[Difference] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)

    def add(self, other: Tally) -> None:
        self.specs += other.specs
        self.refused.update(other.refused)
        self.judged += other.judged
        self.dumped += other.dumped
        self.unjudged += other.unjudged
        self.differences += other.differences
        self.figures.add(other.figures)

    @property
    def agreement(self) -> float:
        """Percentage of the judgements that agree; decided differences count as differences, too."""
        return 100 * (1 - len(self.differences) / max(1, self.judged + self.dumped))

    def undecided(self) -> list[Difference]:
        return [difference for difference in self.differences if difference.sort not in DECIDED]


def measure(specs: Iterable[dict[str, Any]], *, with_columns: bool = False) -> Tally:
    """Judges the input and the output of every spec; fills the columns of ``make corpus`` if wanted."""
    tally = Tally()
    for row in specs:
        tally.specs += 1
        made = outcome(row)
        if made.text is None or made.spec is None or made.documents is None:
            tally.refused[f"{made.refused_by}: {made.reason}"] += 1
            continue
        module = load_module(made.text)
        words = (("inputSchema", module.XInput), ("outputSchema", module.XOutput))
        models = [
            MeasuredModel(
                word, row[word], document, model, _measure_one(tally, row[word], f"{row['key']} {word}", model)
            )
            for (word, model), document in zip(words, made.documents, strict=True)
            if document is not None
        ]
        if with_columns:
            tally.figures.measure(MeasuredTool(row["key"], made.spec, models))
    return tally


def judge_calls(corpus: Path, every: int = 1) -> tuple[int, list[dict[str, Any]]]:
    """Judges the published calls to BFCL's functions: how many were judged, and those whose verdict differs."""
    calls = list(rows(corpus, "bfcl_calls.jsonl"))
    called = {call["tool_key"] for call in calls}
    known = [row for row in rows(corpus, "bfcl.jsonl") if row["key"] in called]
    made = {row["key"]: outcome(row).text for row in known[::every]}
    readers = {key: Reader(load_module(text).XInput) for key, text in made.items() if text is not None}
    judged = [call for call in calls if call["tool_key"] in readers]
    return len(judged), [c for c in judged if _accepts(readers[c["tool_key"]], c["arguments"]) != c["valid"]]


def _accepts(reader: Reader, value: Any) -> bool:
    try:
        reader.from_wire(value)
    except ValidationError:
        return False
    return True


def _measure_one(tally: Tally, schema: Any, key: str, model: type[BaseModel]) -> list[Instance]:
    found = instances(schema, key)
    tally.unjudged += not found
    reader, is_input = Reader(model), key.endswith("inputSchema")
    for instance in found:
        tally.judged += 1
        tally.dumped += bool(instance.verdict.accepted)
        seen = dict(compare(reader, instance, is_input=is_input))
        tally.differences += [
            Difference(sort, key, schema, instance.made_by, instance.value, what) for sort, what in seen.items()
        ]
    return found


def compare(reader: Reader, instance: Instance, *, is_input: bool) -> Iterator[tuple[str, str]]:
    """The kinds of difference that one value shows at any of four entry points; nothing if model and schema agree."""
    model, value, text = reader.model, instance.value, json.dumps(instance.value)
    entry_points: dict[str, Callable[[], BaseModel]] = {
        "the call path": lambda: reader.from_wire(value),
        "the call path, at once from text": lambda: reader.from_text(text) or reader.from_wire(value),
        "model_validate": lambda: model.model_validate(value),
        "model_validate_json": lambda: model.model_validate_json(text),
    }
    if not _python_names(model).isdisjoint(_keys(value)):
        # `class_` stands for `class` in a user's own code; on the call path only the spec's names count.
        entry_points = {entry: parse for entry, parse in entry_points.items() if entry.startswith("the call path")}
    for entry, parse in entry_points.items():
        try:
            parsed = parse()
        except ValidationError as error:
            if instance.verdict.accepted:
                yield _refused(instance, error, is_input=is_input), entry
            continue
        if instance.verdict.accepted:
            yield from _dumped(parsed, value, entry)
            yield from _checked(reader, parsed)
        else:
            yield f"accepted, but refused by {instance.verdict.keyword!r}", entry


def _checked(reader: Reader, parsed: BaseModel) -> Iterator[tuple[str, str]]:
    """Whether an output of this value would pass the check of the call path, and be written as it was read."""
    try:
        reader.check(parsed)
    except ValidationError as error:
        yield "accepted, but refused as an output", str(error)
    if isinstance(parsed, ToolModel):
        written = json.loads(json_writer(type(parsed))(parsed))
        if not same_json(written, parsed.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)):
            yield "written for the model differently than dumped", json.dumps(written)


@lru_cache(maxsize=2)
def _python_names(model: type[BaseModel]) -> frozenset[str]:
    """The names of the fields that have another name on the wire, of a model and of all models in it."""
    found: set[str] = set()
    pending: list[Any] = [model.__pydantic_core_schema__]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if part.get("type") == "model-fields":
                found |= {name for name, field in part["fields"].items() if "validation_alias" in field}
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
    return frozenset(found)


def _keys(value: Any) -> Iterator[str]:
    """The keys of all objects in a value."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _keys(part)


def _refused(instance: Instance, error: ValidationError, *, is_input: bool) -> str:
    if is_input and not isinstance(instance.value, dict):
        return ARGUMENTS
    return f"refused as {error.errors()[0]['type']!r}, but accepted"


def _dumped(parsed: BaseModel, value: Any, entry: str) -> Iterator[tuple[str, str]]:
    with warnings.catch_warnings():
        # pydantic-core dumps a class with typed extra properties in a dict of a union of a union rightly, but warns.
        warnings.filterwarnings("ignore", r"(?s).*Unexpected field `__pydantic_extra__`: Expected", UserWarning)
        data = parsed.model_dump(mode="json", by_alias=True, exclude_unset=True)
        again = json.loads(parsed.model_dump_json(by_alias=True, exclude_unset=True))
    if not same_json(data, value):
        yield "dumped differently than parsed", f"{entry}: {json.dumps(data)}"
    if not same_json(again, value):
        yield "dumped as text differently than parsed", f"{entry}: {json.dumps(again)}"
