"""Functions that are imported under a prefix: ``add`` is a tool of acme's already."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolkit import tool


@tool
def add(numbers: Annotated[list[float], Field(description="What to add up.")]) -> float:
    """Add up any numbers."""
    return sum(numbers)


@tool
async def mean(numbers: Annotated[list[float], Field(min_length=1)]) -> float:
    """The mean of some numbers."""
    return sum(numbers) / len(numbers)
