"""What a tool's answer is made of when it is more than typed data: blocks of text and media."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from toolkit.models.base import ToolModel

BlockType: TypeAlias = Literal["text", "image", "audio", "document"]


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """One block: text, or media given as base64 ``data``, a ``url`` or a provider's ``file_id``.

    >>> ContentBlock("text", text="hello").type
    'text'
    """

    type: BlockType
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        carriers = [name for name in ("data", "url", "file_id", "text") if getattr(self, name) is not None]
        if len(carriers) != 1:
            given = " and ".join(carriers) or "nothing"
            raise ValueError(f"a content block holds exactly one of data, url, file_id or text; given: {given}")
        if (self.type == "text") != (self.text is not None):
            raise ValueError(f"a block of type {self.type!r} cannot be carried by {carriers[0]!r}")


class ContentOutput(ToolModel):
    """The output of a tool whose spec declares none; generated outputs subclass it.

    >>> ContentOutput(text="42").text
    '42'
    """

    text: str = ""
    blocks: Annotated[tuple[ContentBlock, ...], Field(description="media, in the order the tool gave it")] = ()
    structured: Annotated[Any, Field(description="JSON the tool gave beside its text")] = None
