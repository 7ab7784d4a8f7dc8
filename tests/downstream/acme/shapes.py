"""Models that acme had before it had tools: one is what a tool takes, the other what it gives."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Search(BaseModel):
    """Look for shapes."""

    kind: Literal["circle", "square"] = Field(alias="type")
    larger_than: float = 0.0


class Shapes(BaseModel):
    """What was found."""

    names: list[str]
    area: float | None = None
