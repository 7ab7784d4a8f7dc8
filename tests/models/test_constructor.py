"""``Omissible`` fields in Python code: None means that the field is not given. On the wire, null is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from tests.modules import input_model
from toolkit.schema.models import Omissible, ToolModel


class Place(ToolModel, extra="forbid"):
    street: Omissible[str] = None
    post_code: Annotated[Omissible[int], Field(alias="post-code")] = None
    country: str | None = None


class Roads(ToolModel, extra="forbid"):
    q: str
    o: Omissible[int] = None
    place: Omissible[Place] = None
    places: list[Place] = []  # noqa: RUF012


class Plain(ToolModel):
    q: str
    n: int = 10


def test_none_means_not_given() -> None:
    made = Roads(q="x", o=None, place=None)
    assert made == Roads(q="x")
    assert made.model_fields_set == {"q"}
    assert made.o is None


def test_an_absent_field_can_be_copied() -> None:
    absent, given = Roads(q="x"), Roads(q="x", o=3)
    for one in (absent, given):
        copied = Roads(q=one.q, o=one.o, place=one.place)
        assert copied == one and copied.model_fields_set == one.model_fields_set


def test_nested_instances_and_wire_names() -> None:
    made = Roads(
        q="x", place=Place(street=None), places=[Place(**{"post-code": None}), Place(post_code=None, street="s")]
    )
    assert made.place is not None and made.place.model_fields_set == set()
    assert [place.model_fields_set for place in made.places] == [set(), {"street"}]
    assert made.model_dump() == {"q": "x", "place": {}, "places": [{}, {"street": "s"}]}


def test_null_that_the_schema_allows_is_a_value() -> None:
    assert Place(country=None).model_fields_set == {"country"}
    assert Place(country=None).model_dump() == {"country": None}


WIRE: dict[str, Callable[[Any], object]] = {
    "model_validate": Roads.model_validate,
    "model_validate_json": lambda value: Roads.model_validate_json(json.dumps(value)),
    "type adapter": TypeAdapter(Roads).validate_python,
    "nested in a constructor": lambda value: _Holder(roads=value),
}


class _Holder(BaseModel):
    roads: Roads


NULLS: dict[str, dict[str, Any]] = {
    "field": {"q": "x", "o": None},
    "nested field": {"q": "x", "place": {"street": None}},
    "nested wire name": {"q": "x", "places": [{"post-code": None}]},
    "nested python name": {"q": "x", "places": [{"post_code": None}]},
}


@pytest.mark.parametrize("value", NULLS)
@pytest.mark.parametrize("entry", WIRE)
def test_null_on_the_wire_is_refused(entry: str, value: str) -> None:
    with pytest.raises(ValidationError):
        WIRE[entry](NULLS[value])


def test_a_dict_in_a_constructor_is_read_as_on_the_wire() -> None:
    nested: Any = {"street": None}
    with pytest.raises(ValidationError):
        Roads(q="x", place=nested)


def test_required_and_unknown_arguments_are_still_checked() -> None:
    with pytest.raises(ValidationError, match="Field required"):
        Roads(o=None)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Roads(q="x", unknown=None)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="valid string"):
        Roads(q=None)  # type: ignore[arg-type]


def test_only_classes_with_such_fields_have_another_constructor() -> None:
    constructors = {model: vars(model).get("__init__") for model in (Plain, Roads)}
    assert constructors[Plain] is None
    assert constructors[Roads] is not None


class WithOwnConstructor(Roads):
    def __init__(self, q: str) -> None:
        super().__init__(q=q.strip(), o=None)


class Wider(Plain):
    late: Omissible[int] = None


def test_user_subclasses() -> None:
    made = WithOwnConstructor(" x ")
    assert made.q == "x" and made.model_fields_set == {"q"}
    assert Wider(q="x", late=None).model_fields_set == {"q"}
    assert Plain(q="x").model_fields_set == {"q"}


class Short(ToolModel, extra="forbid"):
    q: str
    o: Omissible[int] = None
    r: Annotated[Omissible[str], Field(alias="r-r")] = None


class Shorter(Short):
    q: Annotated[str, Field(max_length=1)]


CONSTRUCTED: list[dict[str, Any]] = [
    {"q": "x"},
    {"q": "x", "o": 1},
    {"q": "x", "o": None},
    {"q": "x", "r": "y"},
    {"q": "x", "r-r": "y"},
    {"q": "x", "r-r": None, "o": 2},
    {"o": None},
    {"o": 1},
    {"unknown": 1},
    {"q": "x", "unknown": 1},
    {"q": "x", "unknown": None},
    {"q": "x", "r": "y", "r-r": "z"},
    {"q": 1},
    {"q": None},
    {"q": "long"},
    {},
]


@pytest.mark.parametrize("values", CONSTRUCTED, ids=str)
def test_the_second_instance_is_made_as_the_first(values: dict[str, Any]) -> None:
    """The constructor of a class is replaced by a faster one when it has been used."""

    def construct(model: type[ToolModel]) -> object:
        try:
            made = model(**values)
        except ValidationError as error:
            return error.errors(include_url=False, include_input=False)
        return made.model_dump(), made.model_fields_set, made.model_extra

    class Fresh(ToolModel, extra="forbid"):
        q: str
        o: Omissible[int] = None
        r: Annotated[Omissible[str], Field(alias="r-r")] = None

    class Below(Fresh):
        q: Annotated[str, Field(max_length=1)]

    Short(q="used"), Shorter(q="u")
    assert construct(Short) == construct(Fresh)
    assert construct(Shorter) == construct(Below)
    Fresh(q="used")
    assert construct(Shorter) == construct(Below)


def test_a_generated_class_that_its_schema_checks() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    model = input_model(schema)
    assert model(a=1, b=None).model_dump() == {"a": 1}
    with pytest.raises(ValidationError):
        model(a=None, b=None)
