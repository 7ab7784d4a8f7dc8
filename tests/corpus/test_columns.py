"""The columns of ``make corpus``: each counts what it says, and a missed goal is named."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, field_serializer

from tests.corpus.columns import (
    COLUMNS,
    Figure,
    Figures,
    MeasuredModel,
    MeasuredTool,
    any_inside,
    bare_any,
    dumps_that_read_back,
    fields,
    hash_names,
    longest_name,
    losses_reported,
    table,
)
from tests.corpus.instances import Instance
from tests.corpus.oracle import Verdict
from tests.modules import load_module, module_text
from toolkit.spec.load import load_spec_text

TEXT = {"type": "string"}


class WritesTextForNumbers(BaseModel):
    a: int

    @field_serializer("a")
    def as_text(self, value: int) -> str:
        return str(value)


def of(value: Any) -> Instance:
    return Instance("whole", value, Verdict(True))


def measured(
    properties: dict[str, Any], *values: Any, text: str | None = None, required: tuple[str, ...] = ()
) -> MeasuredTool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    [spec] = load_spec_text(json.dumps({"name": "find_pets", "inputSchema": schema}), "x.json", None)
    source = module_text(schema)
    instances = [of(value) for value in values]
    return MeasuredTool(spec, text or source, [MeasuredModel(schema, load_module(source).XInput, instances)])


def test_fields_and_any_are_counted() -> None:
    inner = {"type": "object", "properties": {"b": {}, "c": TEXT}}
    tool = measured(
        {"a": {}, "many": {"type": "array"}, "map": {"type": "object"}, "inner": inner, "t": TEXT}, required=("a",)
    )
    assert fields(tool) == (7, 7)
    assert bare_any(tool) == (2, 7)
    assert any_inside(tool) == (2, 7)


def test_names_are_counted_with_the_tools_name() -> None:
    text = "class XInputPetX0a1b2c(ToolModel):\n    pass\n\n\nclass XInput(ToolModel):\n    pass\n"
    tool = measured({}, text=text)
    assert hash_names(tool) == (1, 2)
    assert longest_name(tool) == (len("FindPetsInputPetX0a1b2c"), 0)
    assert hash_names(measured({"xFacade": {"type": "object", "properties": {"a": TEXT}}})) == (0, 3)


def test_findings_of_lint_are_losses_that_are_reported() -> None:
    assert losses_reported(measured({"a": {**TEXT, "default": 7}})) == (1, 0)


def test_a_dump_that_its_own_schema_refuses_does_not_read_back() -> None:
    nullable = {"type": ["string", "null"]}
    tool = measured({"a": nullable, "b": nullable}, {"a": "x", "b": "y"}, {"a": None, "b": "y"})
    assert dumps_that_read_back(tool) == (2, 2)
    wrong = replace(tool.models[0], model=WritesTextForNumbers, schema={"properties": {"a": {"type": "integer"}}})
    assert dumps_that_read_back(replace(tool, models=[replace(wrong, instances=[of({"a": 7})])])) == (0, 1)


def test_the_table_shows_totals_shares_the_largest_and_goals() -> None:
    found = Figures({column.name: Figure(3, 4, 2) for column in COLUMNS})
    head, line, goals = table({"mcp.jsonl": found})
    assert head.split()[:2] == ["file", "fields"]
    assert line.split()[:2] == ["mcp.jsonl", "3"]
    assert "75.00 %" in line and "under 0.5 %" in goals
    assert found.missed()[0] == "hash names: 75.00 %, goal under 0.5 %"
    assert Figures({"hash names": Figure(0, 1000), "dumps read back": Figure(5, 5)}).missed() == []


def test_figures_are_added() -> None:
    whole = Figures({"longest name": Figure(9, 0, 9)})
    whole.add(Figures({"longest name": Figure(7, 0, 7), "fields": Figure(2, 2, 2)}))
    [longest] = [column for column in COLUMNS if column.name == "longest name"]
    assert whole.value(longest) == 9
    assert whole.by_column["fields"].count == 2
