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
    dumps_that_read_back,
    fields,
    fields_with_any,
    hash_names,
    longest_name,
    losses,
    losses_reported,
    nested_types,
    reasons,
    table,
)
from tests.corpus.instances import Instance
from tests.corpus.oracle import Verdict
from tests.corpus.static_meaning import NOTHING_SAID, StaticMeaning
from tests.modules import documents, load_module, module_text
from toolkit.codegen.schema.document import Loss
from toolkit.schema.spec_files import load_spec_text

TEXT = {"type": "string"}


class WritesTextForNumbers(BaseModel):
    a: int

    @field_serializer("a")
    def as_text(self, value: int) -> str:
        return str(value)


def of(value: Any) -> Instance:
    return Instance("whole", value, Verdict(True))


def measured(properties: dict[str, Any], *values: Any, required: tuple[str, ...] = ()) -> MeasuredTool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    [spec] = load_spec_text(json.dumps({"name": "find_pets", "inputSchema": schema}), "x.json", None)
    document, _ = documents(schema)
    model = load_module(module_text(schema)).XInput
    return MeasuredTool("1", spec, [MeasuredModel("inputSchema", schema, document, model, list(map(of, values)))])


def test_fields_and_any_are_counted() -> None:
    inner = {"type": "object", "properties": {"b": {}, "c": TEXT}}
    tool = measured(
        {"a": {}, "many": {"type": "array"}, "map": {"type": "object"}, "inner": inner, "t": TEXT}, required=("a",)
    )
    assert fields(tool) == (7, 7)
    assert fields_with_any(tool) == (4, 7)
    assert tool.meaning.any_by_reason == {NOTHING_SAID: 4}


def test_a_field_that_is_any_for_two_reasons_is_one_field() -> None:
    tool = measured({"a": {"type": ["array", "object"], "items": {"minLength": 2}}})
    assert fields_with_any(tool) == (1, 1)
    assert tool.meaning.any_by_reason == {Loss.NO_TYPE: 1, NOTHING_SAID: 1}


def test_a_class_that_is_used_twice_is_counted_once() -> None:
    pet = {"type": "object", "properties": {"name": {}}, "title": "Pet"}
    tool = measured({"cat": pet, "dog": pet})
    assert fields(tool) == (3, 3)
    assert fields_with_any(tool) == (1, 3)
    assert tool.meaning.any_by_reason == {NOTHING_SAID: 1}


def test_names_are_counted_with_the_tools_name() -> None:
    pet = {"type": "object", "properties": {"a": TEXT}}
    tool = measured({"pet": pet, "xFacade": {"type": "object", "properties": {"b": TEXT}}})
    assert nested_types(tool) == (2, 2)
    assert hash_names(tool) == (0, 2)
    assert longest_name(tool) == (len("FindPetsInputXFacade"), 0)


def test_a_loss_is_reported_if_lint_has_a_finding_at_its_place() -> None:
    tool = measured({"a": {"minLength": 2}, "b": {**TEXT, "default": 7}})
    assert losses(tool) == (1, 1)
    assert losses_reported(tool) == (1, 1)
    document = replace(
        tool.models[0].document, losses=[(Loss.NO_TYPE, "/properties/a"), (Loss.NO_TYPE, "/properties/c")]
    )
    assert losses_reported(replace(tool, models=[replace(tool.models[0], document=document)])) == (1, 2)
    # A type that says less than its schema, and is not noted at all.
    silent = replace(tool.models[0], document=replace(document, losses=[]))
    assert losses_reported(replace(tool, models=[silent])) == (0, 1)


def test_a_dump_that_its_own_schema_refuses_does_not_read_back() -> None:
    nullable = {"type": ["string", "null"]}
    tool = measured({"a": nullable, "b": nullable}, {"a": "x", "b": "y"}, {"a": None, "b": "y"})
    assert dumps_that_read_back(tool) == (2, 2)
    wrong = replace(tool.models[0], model=WritesTextForNumbers, schema={"properties": {"a": {"type": "integer"}}})
    failing = replace(tool, models=[replace(wrong, instances=[of({"a": 7})])])
    assert dumps_that_read_back(failing) == (0, 1)
    figures = Figures()
    figures.measure(failing)
    goal, *failures = figures.missed()
    assert goal == "dumps read back: 0.00 %, goal 100 %"
    assert failures[0].startswith('1 inputSchema {"a": 7}: model_dump() is {"a": "7"}, which its schema refuses')


def test_the_table_shows_totals_shares_the_largest_and_goals() -> None:
    found = Figures({column.name: Figure(3, 4, 2) for column in COLUMNS})
    head, line, goals = table({"mcp.jsonl": found})
    assert head.split()[:2] == ["file", "fields"]
    assert line.split()[:2] == ["mcp.jsonl", "3"]
    assert "75.00 %" in line and "under 0.5 %" in goals
    assert found.missed() == [
        "losses reported: 75.00 %, goal 100 %",
        "hash names: 75.00 %, goal under 0.5 %",
        "dumps read back: 75.00 %, goal 100 %",
    ]
    assert Figures({"hash names": Figure(0, 1000), "dumps read back": Figure(5, 5)}).missed() == []


def test_any_and_losses_are_listed_by_reason() -> None:
    meaning = StaticMeaning()
    meaning.any_by_reason.update({NOTHING_SAID: 12, Loss.NO_TYPE: 1, "": 2})
    meaning.losses.update({Loss.NO_TYPE: 1, Loss.OTHER_BRANCHES: 3})
    assert [line.split(maxsplit=2) for line in reasons(meaning)[1:]] == [
        ["12", "0", "the schema says nothing"],
        ["2", "0", "NOT REPORTED"],
        ["1", "1", "keywords without a type"],
        ["0", "3", "declared by some branches only"],
    ]


def test_figures_are_added() -> None:
    whole = Figures({"longest name": Figure(9, 0, 9)})
    whole.add(Figures({"longest name": Figure(7, 0, 7), "fields": Figure(2, 2, 2)}))
    [longest] = [column for column in COLUMNS if column.name == "longest name"]
    assert whole.value(longest) == 9
    assert whole.by_column["fields"].count == 2
