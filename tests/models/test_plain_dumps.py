"""A plain dump of a tool model is a value that its schema accepts, and reads back as the same model."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Self

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, ModelWrapValidatorHandler, TypeAdapter, model_serializer, model_validator
from pydantic_core import to_jsonable_python

from tests.modules import load_module, module_text
from toolkit.schema.models import Omissible, ToolModel, ToolRootModel

PROPERTIES: dict[str, Any] = {
    "q": {"type": "string"},
    "class": {"type": "integer"},
    "n": {"type": "integer", "default": 10},
    "maybe": {"type": ["string", "null"]},
    "may-be": {"type": ["string", "null"]},
    "nothing": {"type": ["string", "null"], "default": None},
    "any": {},
    "inner": {"type": "object", "properties": {"a-b": {"type": "string"}, "c": {"type": ["integer", "null"]}}},
    "many": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}, "d": {"default": 1}}}},
    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"from": {"type": "integer"}}}},
    "either": {
        "anyOf": [{"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}, {"type": "integer"}]
    },
    "next": {"$ref": "#"},
}  # fmt: skip
PLAIN: dict[str, Any] = {"type": "object", "properties": PROPERTIES, "required": ["q"]}

GIVEN: list[dict[str, Any]] = [
    {"q": "x"},
    {"q": "x", "class": 1},
    {"q": "x", "n": 10, "maybe": None, "may-be": None, "nothing": None, "any": None},
    {"q": "x", "inner": {}, "many": [{}, {"id": 1}], "map": {"a": {}, "b": {"from": 1}}},
    {"q": "x", "inner": {"a-b": "y", "c": None}},
    {"q": "x", "either": {"x": 1}},
    {"q": "x", "next": {"q": "y", "next": {"q": "z", "maybe": None}}},
    {"q": "x", "surplus": None, "other": {"null": None}},
]

STRICTER: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "maxProperties": ({**PLAIN, "maxProperties": 2}, [{"q": "x"}, {"q": "x", "maybe": None}, {"q": "x", "class": 1}]),
    "oneOf by required": (
        {**PLAIN, "oneOf": [{"required": ["maybe"]}, {"required": ["may-be"]}]},
        [{"q": "x", "maybe": None}, {"q": "x", "may-be": "y"}],
    ),
    "dependentRequired": ({**PLAIN, "dependentRequired": {"n": ["class"], "nothing": ["n"]}}, [{"q": "x"}]),
    "not required": ({**PLAIN, "not": {"required": ["nothing"]}}, [{"q": "x"}, {"q": "x", "next": {"q": "y"}}]),
    "uniqueItems": (
        {"type": "object", "properties": {"many": {**PROPERTIES["many"], "uniqueItems": True}}},
        [{"many": [{}, {"d": 1}]}],
    ),
    "a root that is not an object": ({"type": "array", "items": PROPERTIES["inner"], "uniqueItems": True}, [[{}, {"c": None}]]),
}  # fmt: skip

CASES = [("plain", PLAIN, value) for value in GIVEN] + [
    (name, schema, value) for name, (schema, values) in STRICTER.items() for value in values
]

DUMPS: dict[str, Callable[[BaseModel], Any]] = {
    "model_dump": lambda made: made.model_dump(),
    "mode json": lambda made: made.model_dump(mode="json"),
    "text": lambda made: json.loads(made.model_dump_json()),
    "type adapter": lambda made: _list_adapter(made).dump_python([made])[0],
    "type adapter text": lambda made: json.loads(_list_adapter(made).dump_json([made]))[0],
    "to_jsonable_python": to_jsonable_python,
    "inside a user's model": lambda made: _inside(made).model_dump()["value"],
    "inside a user's model as text": lambda made: json.loads(_inside(made).model_dump_json())["value"],
    "copy": lambda made: made.model_copy().model_dump(),
    "deep copy": lambda made: copy.deepcopy(made).model_dump(),
    "nothing new": lambda made: made.model_copy(update={}).model_dump(),
}


def _list_adapter(made: BaseModel) -> TypeAdapter[Any]:
    kind: Any = type(made)
    return TypeAdapter(list[kind])


def _inside(made: BaseModel) -> BaseModel:
    class Holder(BaseModel):
        value: type(made)  # type: ignore[valid-type]

    return Holder(value=made)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def output_model(schema: dict[str, Any]) -> type[BaseModel]:
    model: type[BaseModel] = load_module(module_text({"type": "object"}, schema)).XOutput
    return model


@pytest.mark.sample
@pytest.mark.parametrize("way", DUMPS)
@pytest.mark.parametrize(("name", "schema", "value"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_dump_reads_back(name: str, schema: dict[str, Any], value: Any, way: str) -> None:
    model = output_model(schema)
    made = model.model_validate(value)
    dumped = DUMPS[way](made)
    assert Draft202012Validator(schema).is_valid(dumped), dumped
    assert model.model_validate(dumped) == made
    assert model.model_validate_json(json.dumps(dumped)) == made


def test_absent_stays_absent_given_stays_and_declared_defaults_are_shown() -> None:
    model = output_model(PLAIN)
    assert model.model_validate({"q": "x"}).model_dump() == {"q": "x", "n": 10}
    given: dict[str, Any] = {"q": "x", "maybe": None, "may-be": None, "inner": {}, "many": [{"id": 1}], "surplus": None}
    shown = {**given, "n": 10, "many": [{"id": 1, "d": 1}]}
    assert model.model_validate(given).model_dump() == shown
    assert json.loads(model.model_validate(given).model_dump_json()) == shown


def test_a_schema_that_limits_properties_is_dumped_as_given() -> None:
    schema, _ = STRICTER["maxProperties"]
    made = output_model(schema).model_validate({"q": "x", "next": {"q": "y"}})
    assert made.model_dump() == {"q": "x", "next": {"q": "y"}}
    assert made.model_dump(include={"next": {"q"}}) == {"next": {"q": "y"}}
    assert made.model_dump(exclude={"next": True}) == {"q": "x"}


class Part(ToolModel):
    size: Annotated[Omissible[int], Field(alias="si-ze")] = None
    note: Annotated[str | None, Field(alias="no-te")] = None


class Whole(ToolModel, extra="forbid"):
    name: str
    count: int = 1
    part: Omissible[Part] = None
    tags: Omissible[list[str]] = None
    note: str | None = None


def test_options_of_a_dump_still_count() -> None:
    made = Whole(name="w", count=1, part=Part(note=None))
    assert made.model_dump() == {"name": "w", "count": 1, "part": {"no-te": None}}
    assert made.model_dump(by_alias=False) == {"name": "w", "count": 1, "part": {"note": None}}
    assert json.loads(made.model_dump_json(by_alias=False)) == {"name": "w", "count": 1, "part": {"note": None}}
    assert Whole(name="w").model_dump(exclude_unset=True) == {"name": "w"}
    assert made.model_dump(exclude_defaults=True) == {"name": "w", "part": {}}
    assert made.model_dump(exclude_none=True) == {"name": "w", "count": 1, "part": {}}
    assert made.model_dump(include={"name", "note"}) == {"name": "w"}
    assert made.model_dump(exclude={"part": {"note"}}) == {"name": "w", "count": 1, "part": {}}
    assert made.model_dump(round_trip=True) == made.model_dump()


def test_an_undeclared_property_with_the_python_name_of_a_field_stays() -> None:
    made = Part.model_validate({"note": "extra", "size": None}, by_name=False)
    assert made.model_dump() == {"note": "extra", "size": None}
    assert made.model_dump(by_alias=False)["note"] == "extra"


def test_models_changed_or_made_without_validation() -> None:
    made = Whole(name="w", tags=["a"], note="n")
    for changed in (
        made.model_copy(update={"tags": None, "note": None}),
        made.model_copy(update={"tags": None, "note": None}, deep=True),
    ):
        assert changed.model_dump() == {"name": "w", "count": 1, "note": None}
        assert changed.model_fields_set == {"name", "note"}
    built = Whole.model_construct(name="w", tags=None, part=Part.model_construct(**{"si-ze": None}))
    assert built.model_dump() == {"name": "w", "count": 1, "part": {}}
    assert built.model_fields_set == {"name", "part"}
    assert Whole.model_construct({"name", "tags"}, name="w").model_dump() == {"name": "w", "count": 1}
    wrong = Whole.model_construct(name="w", part={"size": 1})
    assert wrong.model_dump(warnings=False) == {"name": "w", "count": 1, "part": {"size": 1}}


class Mine(Whole):
    """What a user may do with a generated class."""

    extra_note: str | None = None
    later: Omissible[int] = None

    @property
    def shout(self) -> str:
        return self.name.upper()


class Validated(Whole):
    @model_validator(mode="after")
    def check(self) -> Self:
        return self


class ValidatedBefore(Validated):
    @model_validator(mode="wrap")
    @classmethod
    def check_before(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        return validate(value)


class MyWay(Whole):
    @model_serializer
    def as_text(self) -> str:
        return self.name


class Changing(Whole, frozen=False):
    pass


def test_user_subclasses() -> None:
    made = Mine(name="w", later=None)
    assert made.model_dump() == {"name": "w", "count": 1}
    assert made.shout == "W"
    assert Validated(name="w", tags=None).model_dump() == {"name": "w", "count": 1}
    assert ValidatedBefore(name="w", tags=None).model_dump() == {"name": "w", "count": 1}
    assert MyWay(name="w").model_dump_json() == '"w"'
    changing = Changing(name="w", tags=["a"])
    changing.tags = None
    assert changing.model_dump() == {"name": "w", "count": 1}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_copies_are_equal(again: Callable[[Whole], Whole]) -> None:
    made = Whole(name="w", part=Part(size=None, note="n"), tags=None)
    other = again(made)
    assert other == made and repr(other) == repr(made)
    assert other.model_fields_set == made.model_fields_set == {"name", "part"}
    assert other.model_dump() == made.model_dump() == {"name": "w", "count": 1, "part": {"no-te": "n"}}
    assert hash(Part(size=None)) == hash(Part())


class Forest(ToolRootModel[list["Tree"]]):
    __enforced__: ClassVar[str] = '{"maxItems": 2}'


class Tree(ToolModel):
    height: int | None = None
    leaf: Omissible[str] = None
    left: "Omissible[Tree]" = None  # noqa: UP037
    kind: str = "oak"


Forest.model_rebuild()


def test_recursive_classes_leave_out_at_every_depth() -> None:
    tree = Tree(left=Tree(left=Tree(height=None, leaf=None)))
    deep = {"left": {"left": {"height": None, "kind": "oak"}, "kind": "oak"}, "kind": "oak"}
    assert tree.model_dump() == deep
    assert json.loads(tree.model_dump_json()) == deep
    assert Forest([tree]).model_dump() == [{"left": {"left": {"height": None}}}]


def test_classes_that_hold_each_other_keep_their_wire_names() -> None:
    schema: dict[str, Any] = {
        "type": ["object", "boolean"],
        "properties": {"a-b": {"type": ["object", "null"], "properties": {"c-d": {"$ref": "#"}}}},
    }
    output: Any = load_module(module_text({"type": "object"}, schema)).XOutput
    values: list[Any] = [{}, {"a-b": None}, {"a-b": {}}, {"a-b": {"c-d": {"a_b": 1}}}, {"a_b": 1}, {"a-b": {"c_d": 1}}]
    for given in values:
        dumped = output.model_validate(given, by_name=False).model_dump_json()
        assert json.loads(dumped) == given


def test_typed_extra_properties_in_a_union_of_a_union_are_no_reason_to_warn() -> None:
    node = {"type": "object", "additionalProperties": {"type": "integer"}, "properties": {"a": {"type": "string"}}}
    schema: dict[str, Any] = {
        "type": ["object", "boolean"],
        "maxProperties": 2,
        "additionalProperties": {"anyOf": [{"const": "1"}, node]},
    }
    output: Any = load_module(module_text({"type": "object"}, schema)).XOutput
    for given in ({"x": {"b": 1}}, {"x": "1", "y": {"a": "", "b": 2}}, True):
        assert json.loads(output.model_validate(given).model_dump_json()) == given


def test_the_json_schema_of_a_dump_is_that_of_the_class() -> None:
    for model in (Part, Whole, Forest):
        assert set(model.model_json_schema(mode="serialization")) >= set(model.model_json_schema()) - {"title"}
