"""Signatures of tools that are made from functions, and of the types that functions take and return."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, Required
from uuid import UUID

import pytest
from pydantic import AnyUrl, BaseModel, Field, RootModel
from typing_extensions import TypeAliasType, TypedDict

from tests.runtime.conftest import MakeDoor
from toolkit import ContentBlock, ToolContext, define_tool, tool
from toolkit.runtime.signatures import HEAD, TypeTexts
from toolkit.wire import ContentOutput


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    label: str
    weight: float = 1.0
    children: list[Node] = field(default_factory=list)


class Person(BaseModel):
    name: Annotated[str, Field(min_length=1)]
    home_page: str | None = Field(default=None, alias="homePage")


class People(RootModel[list[Person]]):
    pass


class Options(TypedDict):
    deep: bool
    limit: NotRequired[int]


class Loose(TypedDict, total=False):
    deep: Required[bool]
    limit: int


class Empty(BaseModel):
    pass


UserId = NewType("UserId", int)
Numbers = TypeAliasType("Numbers", int | list[int])


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "str"),
        (None, "None"),
        (Any, "Any"),
        (object, "Any"),
        (int | None, "int | None"),
        (None | int, "int | None"),
        (Annotated[list[int], "a note"], "list[int]"),
        (Literal["a", 1, None], "Literal['a', 1, None]"),
        (Color, "Literal['red', 'blue']"),
        (Literal[Color.RED], "Literal['red']"),
        (tuple[int, str], "list[int | str]"),
        (tuple[int, ...], "list[int]"),
        (set[str], "list[str]"),
        (Sequence[bytes], "list[str]"),
        (Mapping[int, list[Decimal]], "dict[str, list[str]]"),
        (dict, "dict[str, Any]"),
        (list, "list[Any]"),
        (Path, "str"),
        (AnyUrl, "str"),
        (date | datetime | UUID, "date | datetime | UUID"),
        (UserId, "int"),
        (ToolContext, "Any"),
        (list["NotDefined"], "list[Any]"),  # type: ignore[name-defined] # noqa: F821
    ],
)
def test_a_type_without_classes(annotation: Any, text: str) -> None:
    texts = TypeTexts("X")
    assert (texts.write(annotation), texts.types) == (text, ())


@pytest.mark.parametrize(
    ("annotation", "output", "argument"),
    [
        (Node, "class XNode: label: str; weight: float; children: list[XNode]", "class XNode(TypedDict): label: str; weight: NotRequired[float]; children: NotRequired[list[XNode]]"),
        (Person, "class XPerson: name: str; home_page: str | None", "class XPerson(TypedDict): name: str; homePage: NotRequired[str | None]"),
        (Options, "class XOptions(TypedDict): deep: bool; limit: NotRequired[int]", "class XOptions(TypedDict): deep: bool; limit: NotRequired[int]"),
        (Loose, "class XLoose(TypedDict): deep: bool; limit: NotRequired[int]", "class XLoose(TypedDict): deep: bool; limit: NotRequired[int]"),
        (Empty, "class XEmpty: pass", "class XEmpty(TypedDict): pass"),
        (Numbers, "XNumbers: TypeAlias = int | list[int]", "XNumbers: TypeAlias = int | list[int]"),
    ],
)  # fmt: skip
def test_a_class_as_output_and_as_argument(annotation: Any, output: str, argument: str) -> None:
    for texts, line in ((TypeTexts("X"), output), (TypeTexts("X", as_arguments=True), argument)):
        assert texts.write(annotation) == line.removeprefix("class ").partition(":")[0].partition("(")[0]
        assert [one.line for one in texts.types] == [line]


def test_a_root_model_has_a_root_as_output_and_is_plain_as_argument() -> None:
    texts = TypeTexts("X")
    assert texts.write(People) == "XPeople"
    assert texts.types[0].line == "class XPeople: root: list[XPerson]"
    assert TypeTexts("X", as_arguments=True).write(People) == "list[XPerson]"


def test_two_classes_of_one_name_have_two_names() -> None:
    first, second = (type("Same", (BaseModel,), {"__annotations__": {"value": kind}}) for kind in (int, str))
    texts = TypeTexts("X")
    assert [texts.write(first), texts.write(second), texts.write(first)] == ["XSame", "XSame_", "XSame"]


@tool(name="people.find")
def find_people(like: Person, ctx: ToolContext, limit: int = 3, color: Color = Color.RED) -> list[Person]:
    """Find people. By name, mostly."""
    return []


@tool
def plant(tree: Node, options: Options | None = None) -> Node:
    "Plant a tree."
    return tree


@tool
def say(text: str) -> str:
    return text


@tool
def picture() -> list[ContentBlock]:
    "Draw."
    return []


@tool
def anything() -> ContentOutput:
    "Answer."
    return ContentOutput()


whole = define_tool(lambda given: given.name, name="whole", description="Take it whole.", input=Person)


def test_the_signatures_of_functions(make_door: MakeDoor) -> None:
    door = make_door(packs=[find_people, plant, say, picture, anything, whole])
    assert door.signatures().splitlines() == [
        HEAD,
        "anything()  # Answer.",
        "people_find(like: PeopleFindArgsPerson, limit: int = 3, color: Literal['red', 'blue'] = ...) -> list[PeopleFindPerson]"
        "  # 'people.find'. Find people.",
        "class PeopleFindArgsPerson(TypedDict): name: str; homePage: NotRequired[str | None]",
        "class PeopleFindPerson: name: str; home_page: str | None",
        "picture() -> list[ContentBlock]  # Draw.",
        "plant(tree: PlantArgsNode, options: PlantArgsOptions | None = None) -> PlantNode  # Plant a tree.",
        "class PlantArgsNode(TypedDict): label: str; weight: NotRequired[float]; children: NotRequired[list[PlantArgsNode]]",
        "class PlantArgsOptions(TypedDict): deep: bool; limit: NotRequired[int]",
        "class PlantNode: label: str; weight: float; children: list[PlantNode]",
        "say(text: str) -> str",
        "whole(name: str, homePage: str | None = None) -> Any  # Take it whole.",
        "class ContentOutput: text: str; blocks: list[ContentBlock]; structured: Any",
        "class ContentBlock: type: Literal['text', 'image', 'audio', 'document']; media_type: str | None; data: str | None; "
        "url: str | None; file_id: str | None; text: str | None; filename: str | None",
    ]


def test_a_generated_tool_whose_function_returns_its_own_types(make_door: MakeDoor) -> None:
    function, *classes = make_door().signatures(["quote"]).splitlines()[1:]
    assert function.startswith(
        "quote(lines: list[QuoteArgsLine], currency: Literal['EUR', 'USD'] = \"EUR\") -> QuoteQuote  # "
    )
    assert classes[0].startswith("class QuoteArgsLine(TypedDict): item: str; count: NotRequired[int]")
    assert classes[1].startswith("class QuoteQuote: ")
