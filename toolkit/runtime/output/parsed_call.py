"""A model's call with validated arguments. A union of them narrows by ``.name``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ParsedCall(Generic[NameT_co, ContentT_co]):
    """A ``ToolCall`` whose name is known and whose arguments are validated; see ``parse_call``."""

    id: str
    name: NameT_co
    arguments: ContentT_co
