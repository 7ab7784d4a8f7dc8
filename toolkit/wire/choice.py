"""Whether a model may or must call a tool, and which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class NamedTool:
    """The model must call this tool."""

    name: str


@dataclass(frozen=True, slots=True)
class NativeChoice:
    """A choice that only one provider has, in that provider's form; it is sent unchanged, and to no other provider."""

    provider: str
    raw: object


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool | NativeChoice
"""``auto`` leaves it to the model, ``none`` forbids calls, ``required`` asks for at least one."""
