"""Whether and which tool a model is to call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class NamedTool:
    """This very tool must be called."""

    name: str


@dataclass(frozen=True, slots=True)
class NativeChoice:
    """A choice that only one provider knows, as it writes it; goes out unchanged to that provider."""

    provider: str
    raw: object


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool | NativeChoice
"""``auto`` leaves it to the model, ``none`` forbids calls, ``required`` wants at least one."""
