"""Tools that are made inside functions and classes: their annotations mean what is defined there."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolkit import Depends, FunctionTool, SetupError, ToolContext, define_tool, tool

if TYPE_CHECKING:
    from decimal import Decimal


def local_model() -> FunctionTool[..., Any]:
    class Order(BaseModel):
        number: int

    @tool
    def order(order: Order) -> list[Order]:
        "Repeat an order."
        return [order, order]

    return order


def with_options() -> FunctionTool[..., Any]:
    @dataclass
    class Order:
        number: int

    @tool(name="order", description="Repeat an order.")
    def repeat(order: Annotated[Order, Field(description="Which.")]) -> list[Order]:
        return [order, order]

    return repeat


def defined_from_data() -> FunctionTool[..., Any]:
    class Order(TypedDict):
        number: int

    def repeat(order: Order) -> list[Order]:
        return [order, order]

    return define_tool(repeat, name="order", description="Repeat an order.")


def with_quotes() -> FunctionTool[..., Any]:
    class Order(BaseModel):
        number: int

    def repeat(order: Any) -> Any:
        return [order, order]

    # As in a module without `from __future__ import annotations`.
    repeat.__annotations__ = {"order": Annotated["Order", 1], "return": list["Order"]}
    return tool(name="order", description="Repeat an order.")(repeat)


def in_a_class() -> FunctionTool[..., Any]:
    class Order(BaseModel):
        number: int

    class Shop:
        Count: TypeAlias = int

        @staticmethod
        def _double(order: Order) -> list[Order]:
            return [order, order]

        @tool(description="Repeat an order.")
        @staticmethod
        def order(order: Order, count: Count = 2) -> list[Order]:
            return [order] * count

    return Shop.order


def through_a_closure() -> FunctionTool[..., Any]:
    class Order(BaseModel):
        number: int

    def make() -> FunctionTool[..., Any]:
        @tool
        def order(order: Order) -> list[Order]:
            "Repeat an order."
            assert isinstance(order, Order)
            return [order, order]

        return order

    return make()


def injected() -> FunctionTool[..., Any]:
    class Order(BaseModel):
        number: int

    class Shop:
        def repeat(self, order: Order) -> list[Order]:
            return [order, order]

    @tool
    def order(order: Order, shop: Annotated[Shop, Depends(Shop)]) -> list[Order]:
        "Repeat an order."
        return shop.repeat(order)

    return order


def wrapped() -> FunctionTool[..., Any]:
    import functools

    class Order(BaseModel):
        number: int

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def log(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return log

    @tool
    @logged
    def order(order: Order) -> list[Order]:
        "Repeat an order."
        return [order, order]

    return order


@pytest.mark.sample
@pytest.mark.parametrize(
    "make",
    [local_model, with_options, defined_from_data, with_quotes, in_a_class, through_a_closure, injected, wrapped],
)
def test_annotations_mean_what_is_defined_around_the_tool(
    make: Callable[[], FunctionTool[..., Any]], tmp_path: Path
) -> None:
    made = make()
    gc.collect()
    with ToolContext.standalone(tmp_path) as ctx:
        result = made.execute_raw('{"order": {"number": 7}}', ctx)
        wrong = made.execute_raw('{"order": {"number": "seven"}}', ctx)

    assert (result.kind, result.value) == ("data", [{"number": 7}, {"number": 7}])
    assert str(wrong.value).startswith("INVALID_TOOL_ARGUMENTS: order.number: ")
    assert "number" in str(made.definition.parameters)


def test_a_name_that_is_imported_for_checkers_only_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    @tool
    def price(value: list[Decimal]) -> str:
        "Never run."
        return ""

    with pytest.raises(SetupError) as caught:
        price.definition  # noqa: B018
    message = str(caught.value)
    assert "the annotation 'list[Decimal]' of 'value' in " in message
    assert "name 'Decimal' is not defined" in message and "outside TYPE_CHECKING" in message


class Large:
    """Something in the frame that no annotation mentions."""


def test_a_tool_keeps_nothing_else_of_its_frame() -> None:
    def make() -> tuple[FunctionTool[..., Any], weakref.ref[Large]]:
        class Order(BaseModel):
            number: int

        large = Large()

        @tool
        def order(order: Order) -> str:
            "Take an order."
            return str(order.number)

        return order, weakref.ref(large)

    made, large = make()
    gc.collect()
    assert large() is None
    assert made.definition.name == "order"
