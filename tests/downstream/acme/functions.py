"""Acme's tools that are written as functions: the generator reads them, so that they are typed as the others are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolkit import Depends, ToolContext, tool

Currency = Literal["EUR", "USD"]


class Line(BaseModel):
    """What is bought, and how much of it."""

    item: Annotated[str, Field(min_length=1, description="Its name in the price list.")]
    count: Annotated[int, Field(ge=1, description="How many.")] = 1


class Quote(BaseModel):
    """A price for all lines."""

    total: int
    currency: Currency
    missing: list[str] = []


@dataclass(frozen=True)
class Offer:
    """What one item costs less than usual."""

    item: str
    saved: int


def price_list() -> dict[str, int]:
    return {"apple": 2, "pear": 3}


@tool
def quote(
    lines: Annotated[list[Line], Field(description="What to buy.")],
    prices: Annotated[dict[str, int], Depends(price_list)],
    ctx: ToolContext,
    currency: Annotated[Currency, Field(description="What to pay in.")] = "EUR",
) -> Quote:
    """Add up what some items cost."""
    missing = [line.item for line in lines if line.item not in prices]
    ctx.metadata(title=f"{len(lines)} lines")
    return Quote(total=sum(prices.get(line.item, 0) * line.count for line in lines), currency=currency, missing=missing)


@tool(name="greet-kindly")
async def greet(name: str, *, times: int = 1) -> str:
    """Greet somebody.

    :param name: Whom to greet.
    :param times: How often.
    """
    return " ".join([f"hello {name}"] * times)


@tool
def past_quotes(currency: Currency = "EUR") -> list[Quote]:
    """List the prices that were asked for before."""
    return [Quote(total=2, currency=currency), Quote(total=3, currency=currency, missing=["fig"])]


@tool
def best_offer(items: list[str]) -> Offer | None:
    """Find the item whose price fell most."""
    return Offer(items[0], 1) if items else None
