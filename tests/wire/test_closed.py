"""The user's own types accept a value from the wire exactly when their JSON Schema does; ``jsonschema`` is the oracle."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_core import SchemaValidator
from typing_extensions import TypedDict

from tests.examples import tries
from toolkit.errors import SetupError
from toolkit.schema.models import Omissible, ToolModel, schema_of_arguments, validator_from_wire


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


@dataclass
class Pair:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)


class Row(TypedDict):
    a: int
    b: NotRequired[str]


class Spot(NamedTuple):
    a: int
    b: int = 0


class Point(BaseModel):
    a: int
    b: float = 1.5


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Node(BaseModel):
    a: int
    b: list[Node] = []


class Checked(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def same(cls, value: int) -> int:
        return value


class Aliased(BaseModel):
    model_config = ConfigDict(validate_by_name=True)
    first: Annotated[int, Field(alias="a")]


class Numbers(RootModel[list[int]]):
    pass


class Cat(BaseModel):
    kind: Literal["cat"]
    a: int


class Dog(BaseModel):
    kind: Literal["dog"]
    b: bool = False


class Exact(ToolModel):
    a: int


TYPES: dict[str, Any] = {
    "int": int,
    "int with limits": Annotated[int, Field(ge=0, lt=3)],
    "optional int with limits": Annotated[int | None, Field(ge=1)],
    "float": float,
    "float with limits": Annotated[float, Field(gt=0, le=2.5)],
    "str": str,
    "str with limits": Annotated[str, Field(min_length=1, max_length=2)],
    "str with pattern": Annotated[str, Field(pattern="^a+$")],
    "bool": bool,
    "None": None,
    "optional str": str | None,
    "omissible": Omissible[int],  # type: ignore[misc]
    "literal texts": Literal["a", "b"],
    "mixed literals": Literal["a", 1, True, None],
    "literal of an enum": Literal[Colour.RED],
    "enum": Colour,
    "int enum": Level,
    "anything": Any,
    "object": object,
    "list": list,
    "list of int": list[int],
    "limited list": Annotated[list[str], Field(min_length=1, max_length=2)],
    "sequence": Sequence[int],
    "iterable": Iterable[int],
    "tuple": tuple[int, str],
    "endless tuple": tuple[int, ...],
    "named tuple": Spot,
    "set": set[int],
    "frozen set": frozenset[str],
    "dict": dict,
    "dict of int": dict[str, int],
    "mapping": Mapping[str, list[bool]],
    "dict with known keys": dict[Literal["a", "b"], int],
    "union": int | str | list[int],
    "model": Point,
    "optional model": Point | None,
    "list of models": list[Point],
    "open model": Open,
    "recursive model": Node,
    "model with a validator": Checked,
    "model with an alias": Aliased,
    "root model": Numbers,
    "exact model": Exact,
    "dataclass": Pair,
    "typed dict": Row,
    "tagged union": Annotated[Cat | Dog, Field(discriminator="kind")],
    "plain union of models": Cat | Dog,
    "checked after": Annotated[int, AfterValidator(lambda value: value)],
    "checked before": Annotated[int, BeforeValidator(lambda value: value)],
    "bytes": bytes,
    "path": pathlib.Path,
}
FORMATS: dict[str, Any] = {
    "date": datetime.date,
    "time": datetime.datetime,
    "duration": datetime.timedelta,
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
    "address": ipaddress.IPv4Address,
}

VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 1.0, 1.5, 2.6, 2**70, 1e300, "", "a", "b", "aa", "aaa", "red", "1", "true",
    [], [1], [1.0], [1, 1.0], [1, 2], [1, 2, 3], [True], ["a"], ["a", "a"], ["a", "b"], [1, "a"], [[True]], [None],
    {}, {"a": 1}, {"a": 1.0}, {"a": "1"}, {"a": True}, {"a": None}, {"a": 1, "b": "x"}, {"a": 1, "b": 2}, {"a": 1, "b": 2.5},
    {"a": 1, "b": None}, {"a": 1, "b": []}, {"a": 1, "b": [{"a": 2}]}, {"a": 1, "b": [{"a": "2"}]}, {"a": 1, "b": [{"a": 2, "z": 1}]},
    {"a": 1, "c": [1.0]}, {"a": 1, "c": ["1"]}, {"a": 1, "z": 1}, {"b": "x"}, {"first": 1}, {"a": [True]}, {"a": ["true"]},
    {"kind": "cat", "a": 1}, {"kind": "cat", "a": True}, {"kind": "cat", "a": 1, "b": True}, {"kind": "dog"}, {"kind": "dog", "b": 1},
    {"kind": "cow"}, [{"a": 1}], [{"a": 1, "z": 1}], [{"a": "1"}],
]  # fmt: skip

_made: dict[str, tuple[Callable[[Any], Any], Draft202012Validator]] = {}


def pair(name: str) -> tuple[Callable[[Any], Any], Draft202012Validator]:
    """What validates ``{"v": value}``, and the oracle for it."""
    if name not in _made:
        kind = {**TYPES, **FORMATS}[name]
        model = create_model("Model", __config__=ConfigDict(extra="forbid"), v=(kind, ...))
        validator = validator_from_wire(model.__pydantic_core_schema__)
        schema = schema_of_arguments(model)
        _made[name] = (lambda value: read(validator, value)), Draft202012Validator(schema)
    return _made[name]


def read(validator: SchemaValidator, value: Any) -> Any:
    return validator.validate_python(value, by_alias=True, by_name=False)


def accepts(name: str, value: Any) -> bool:
    try:
        pair(name)[0]({"v": value})
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.slow
def test_accepted_exactly_when_the_schema_accepts(name: str) -> None:
    oracle = pair(name)[1]
    wrong = [value for value in VALUES if accepts(name, value) != oracle.is_valid({"v": value})]
    assert not wrong
    assert any(accepts(name, value) for value in VALUES)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_checked_by_its_type_and_takes_nothing_but_text(name: str) -> None:
    oracle = pair(name)[1]
    surplus = [value for value in VALUES if accepts(name, value) and not oracle.is_valid({"v": value})]
    assert not surplus
    assert not [
        value
        for value in VALUES
        if not accepts(name, value) and oracle.is_valid({"v": value}) and type(value) is not str
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["a", "b", "red", "cat", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "kind"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@tries(200)
@given(st.sampled_from(sorted(TYPES)), json_values)
@pytest.mark.slow
def test_any_value_is_accepted_exactly_when_the_schema_accepts(name: str, value: Any) -> None:
    assert accepts(name, value) == pair(name)[1].is_valid({"v": value}), json.dumps(value)


def value_of(name: str, value: Any) -> Any:
    return pair(name)[0]({"v": value}).v


def test_values_have_the_types_the_function_asks_for() -> None:
    assert value_of("enum", "red") is Colour.RED
    assert value_of("int enum", 1.0) is Level.HIGH
    assert value_of("literal of an enum", "red") is Colour.RED
    assert value_of("dataclass", {"a": 1.0}) == Pair(1)
    assert value_of("named tuple", [1, 2.0]) == Spot(1, 2)
    assert value_of("set", [1.0, 2]) == {1, 2}
    assert value_of("sequence", [1.0]) == [1]
    assert value_of("recursive model", {"a": 1, "b": [{"a": 2.0}]}) == Node(a=1, b=[Node(a=2)])
    assert value_of("date", "2026-11-15") == datetime.date(2026, 11, 15)
    assert value_of("decimal", "1.5") == decimal.Decimal("1.5")
    assert value_of("path", "a/b") == pathlib.Path("a/b")
    assert type(value_of("int", 1.0)) is int


def test_own_classes_stay_as_they_are() -> None:
    pair("model")
    assert Point.model_validate({"a": "7", "z": 1}) == Point(a=7)


@pytest.mark.parametrize(
    ("kind", "why"), [(dict[int, int], "keys of a dict must be strings"), (Callable[[], int], "no JSON Schema")]
)
def test_what_json_cannot_carry_is_refused(kind: Any, why: str) -> None:
    model = create_model("Model", v=(kind, ...))
    with pytest.raises(SetupError, match=why):
        validator_from_wire(model.__pydantic_core_schema__)


def test_every_object_of_a_schema_is_closed_and_nothing_is_said_twice() -> None:
    model = create_model(
        "Model",
        node=(Node, ...),
        pair=(Pair | None, None),
        rows=(list[Row], []),
        note=(Omissible[str], None),  # type: ignore[misc]
    )
    schema = schema_of_arguments(model)
    assert schema["additionalProperties"] is False
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    assert {name: node["additionalProperties"] for name, node in definitions.items()} == {
        "Node": False,
        "Pair": False,
        "Row": False,
    }
    assert "title" not in json.dumps(schema)
    assert schema["properties"] == {
        "node": {"$ref": "#/$defs/Node"},
        "pair": {"anyOf": [{"$ref": "#/$defs/Pair"}, {"type": "null"}], "default": None},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}, "default": []},
        "note": {"type": "string"},
    }


def test_a_recursive_object_of_arguments_stands_at_the_top() -> None:
    schema = schema_of_arguments(Node)
    assert (schema["type"], schema["required"]) == ("object", ["a"])
    assert Draft202012Validator(schema).is_valid({"a": 1, "b": [{"a": 2}]})
