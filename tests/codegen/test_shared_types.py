"""Equal types of a tool are one class; types that differ in anything a reader or a caller would notice stay apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codegen.test_class_names import Json, either, holding, many, names, tagged, thing
from tests.modules import documents, load_module, module_text

POINT: Json = {
    "type": "object",
    "properties": {"x": {"type": "integer", "description": "From the left."}, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}


def changed(**keys: Any) -> Json:
    return {**POINT, **keys}


def with_property(name: str, schema: Json) -> Json:
    return changed(properties={**POINT["properties"], name: schema})


SHARED: dict[str, tuple[Json, list[str]]] = {
    "two properties": ({"start": POINT, "end": POINT}, ["Start"]),
    "the words that both end with": ({"billing_address": POINT, "shipping_address": POINT}, ["Address"]),
    "prepositions are no names": ({"created_by": POINT, "updated_by": POINT}, ["CreatedBy"]),
    "one, or a list of it": ({"points": either(POINT, many(POINT))}, ["Point"]),
    "the order in which properties are required": (
        {"a": changed(required=["x", "y"]), "b": changed(required=["y", "x"])}, ["A"],
    ),
    "what a property is for is said there": (
        {"start": changed(description="Where it starts."), "end": changed(description="Where it ends.")}, ["Start"],
    ),
    "at every depth": (
        {"a": holding("inner", POINT), "b": holding("inner", POINT), "corner": POINT}, ["A", "Corner"],
    ),
    "branches that become equal": (
        {"a": holding("p", either(POINT, many(POINT))), "b": holding("p", either(POINT, many(POINT)))}, ["A", "P"],
    ),
    "types with limits, under one name": (
        {"a": holding("tags", many({"type": "string", "maxLength": 9})), "b": holding("tags", many({"type": "string", "maxLength": 9}))},
        ["A", "Tag"],
    ),
    "definitions": (
        {"a": {"$ref": "#/$defs/simple-user"}, "b": {"$ref": "#/$defs/nullable-simple-user"}}, ["SimpleUser"],
    ),
}  # fmt: skip
DEFINITIONS: Json = {"simple-user": POINT, "nullable-simple-user": {"anyOf": [POINT, {"type": "null"}]}}


@pytest.mark.parametrize("row", SHARED)
def test_equal_types_are_one_class(row: str) -> None:
    properties, expected = SHARED[row]
    assert names(properties, **{"$defs": DEFINITIONS}) == expected


APART: dict[str, Json] = {
    "another property": with_property("z", {"type": "integer"}),
    "another type": with_property("x", {"type": "number", "description": "From the left."}),
    "another limit": with_property("x", {"type": "integer", "description": "From the left.", "minimum": 0}),
    "another default": with_property("y", {"type": "integer", "default": 1}),
    "no default": with_property("y", {"type": "integer"}),
    "another description of a property": with_property("x", {"type": "integer", "description": "From the right."}),
    "more is required": changed(required=["x", "y"]),
    "closed": changed(additionalProperties=False),
    "another order": changed(properties=dict(reversed(POINT["properties"].items()))),
}


@pytest.mark.parametrize("row", APART)
def test_types_that_differ_stay_apart(row: str) -> None:
    assert names({"start": POINT, "end": APART[row]}) == ["End", "Start"]


def test_a_description_that_is_shown_nowhere_else_keeps_types_apart() -> None:
    one, other = changed(description="A start."), changed(description="An end.")
    assert names({"starts": many(one), "ends": many(other)}) == ["End", "Start"]
    assert names({"starts": many(one), "ends": many(one)}) == ["Start"]


def test_the_class_for_several_descriptions_has_none() -> None:
    one, other = changed(description="Where it starts."), changed(description="Where it ends.")
    module = load_module(module_text({"type": "object", "properties": {"start": one, "end": other}}))
    assert module.XInputStart.__doc__ is None
    text = module_text({"type": "object", "properties": {"start": one, "end": other}})
    assert "Where it starts." in text and "Where it ends." in text


def test_limits_of_different_properties_keep_their_own_names() -> None:
    short: Json = {"type": "string", "maxLength": 9}
    assert names({"tags": many(short), "labels": many(short)}) == ["Label", "Tag"]


def tree(key: str, name: str) -> Json:
    return {"type": "object", "properties": {key: many({"$ref": f"#/$defs/{name}"})}}


def test_types_that_contain_themselves_are_compared_as_well() -> None:
    definitions = {"a": tree("children", "a"), "b": tree("children", "b"), "c": tree("kids", "c")}
    found = names({key: {"$ref": f"#/$defs/{key}"} for key in definitions}, **{"$defs": definitions})
    assert found == ["A", "C"]


def test_types_that_contain_each_other_are_one_if_nothing_differs() -> None:
    definitions = {"a": tree("children", "b"), "b": tree("children", "a")}
    assert names({"a": {"$ref": "#/$defs/a"}}, **{"$defs": definitions}) == ["A"]


def test_references_in_the_same_order_at_other_places_are_not_equal() -> None:
    one, two = thing("a"), thing("b")
    first = {"type": "object", "properties": {"p": either(one, two), "q": one}}
    second = {"type": "object", "properties": {"p": one, "q": either(two, one)}}
    inputs, _ = documents({"type": "object", "properties": {"first": first, "second": second}})
    assert {"XInputFirst", "XInputSecond"} <= inputs.objects.keys()


def test_an_equal_object_inside_the_root_is_not_the_root() -> None:
    """The root is judged by the validator as well; what is inside it is not."""
    inner = {"type": "object", "properties": {"next": {"type": "object", "properties": {"next": {"type": "null"}}}}}
    assert names({"next": inner}) == ["Next", "NextNext"]


def test_shared_classes_accept_and_refuse_what_their_schemas_do() -> None:
    schema = {
        "type": "object",
        "properties": {
            "start": POINT,
            "end": {**POINT, "default": {"x": 3}},
            "path": many(either(tagged("line", "a"), tagged("curve", "b"), POINT)),
            "other": many(either(POINT, tagged("line", "a"))),
        },
    }
    module = load_module(module_text(schema))
    given = {"start": {"x": 1}, "path": [{"type": "line", "a": "b"}, {"x": 2, "y": 3}], "other": [{"x": 1}]}
    value = module.XInput.model_validate(given)
    assert type(value.start) is type(value.end) is type(value.path[1]) is type(value.other[0]) is module.XInputStart
    assert value.end.x == 3
    assert type(value.path[0]) is module.XInputLine
    with pytest.raises(ValueError, match="start"):
        module.XInput.model_validate({"start": {"y": 1}})
