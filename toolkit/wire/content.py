"""Blocks of text and media: the content of messages, and of tool outputs that are more than typed data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from toolkit.schema.models import ToolModel

BlockType: TypeAlias = Literal["text", "image", "audio", "document"]
ImageDetail: TypeAlias = Literal["low", "high", "auto"]


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """One block: text, or media as base64 ``data``, a ``url`` or a provider's ``file_id``.

    ``provider`` says whose file a ``file_id`` is: no other provider can read it. ``filename`` is the name that a model sees
    for a document. ``detail`` says how closely a model looks at an image, where the provider lets one choose.

    >>> ContentBlock("text", text="hello").type
    'text'
    """

    type: BlockType
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    text: str | None = None
    filename: str | None = None
    provider: str | None = None
    detail: ImageDetail | None = None

    def __post_init__(self) -> None:
        carriers = [name for name in ("data", "url", "file_id", "text") if getattr(self, name) is not None]
        if len(carriers) != 1:
            given = " and ".join(carriers) or "nothing"
            raise ValueError(f"a content block takes exactly one of data, url, file_id or text; it was given {given}")
        if (self.type == "text") != (self.text is not None):
            raise ValueError(f"a content block of type {self.type!r} does not take {carriers[0]!r}")


class ContentOutput(ToolModel):
    """The output of a tool whose spec declares no output schema; generated outputs subclass it.

    >>> ContentOutput(text="42").text
    '42'
    """

    __carries_content__: ClassVar[bool] = True

    text: str = ""
    blocks: Annotated[tuple[ContentBlock, ...], Field(description="media, in the order the tool returned it")] = ()
    structured: Annotated[Any, Field(description="JSON the tool returned next to its text")] = None
