"""A tool made from a function, without generation: ``content`` is the function's own value, of the user's own classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.runtime.conftest import Door, MakeDoor
from toolkit import FunctionTool, ToolCall, tool


class Order(BaseModel):
    number: int


@dataclass
class Parcel:
    order: Order


class Row(TypedDict):
    order: Order


ORDER = Order(number=7)


@tool
def one() -> Order:
    "One order."
    return ORDER


@tool
def several() -> list[Order]:
    "Several orders."
    return [ORDER]


@tool
def by_name() -> dict[str, Order]:
    "Orders by name."
    return {"first": ORDER}


@tool
def perhaps() -> Order | None:
    "An order, or nothing."
    return ORDER


@tool
def parcel() -> Parcel:
    "A dataclass."
    return Parcel(ORDER)


@tool
def row() -> Row:
    "A typed dict."
    return {"order": ORDER}


@tool
async def later() -> list[Order]:
    "Several orders, later."
    return [ORDER]


WANTED: dict[FunctionTool[..., Any], tuple[object, object]] = {
    one: (ORDER, {"number": 7}),
    several: ([ORDER], [{"number": 7}]),
    by_name: ({"first": ORDER}, {"first": {"number": 7}}),
    perhaps: (ORDER, {"number": 7}),
    parcel: (Parcel(ORDER), {"order": {"number": 7}}),
    row: ({"order": ORDER}, {"order": {"number": 7}}),
    later: ([ORDER], [{"number": 7}]),
}


def orders_in(value: Any) -> list[Order]:
    if isinstance(value, Order):
        return [value]
    if isinstance(value, Parcel):
        return [value.order]
    return list(value.values()) if isinstance(value, dict) else list(value)


@pytest.fixture
def door(make_door: MakeDoor) -> Door:
    return make_door(packs=list(WANTED))


@pytest.mark.parametrize("made", WANTED, ids=lambda made: made.name)
def test_the_content_is_what_the_function_returned(door: Door, made: FunctionTool[..., Any]) -> None:
    content, data = WANTED[made]

    message = door.invoke(made.name, {})

    assert message.content == content and type(message.content) is type(content)
    assert all(found is ORDER for found in orders_in(message.content))
    assert door.call(ToolCall("1", made.name, {})).value == data
