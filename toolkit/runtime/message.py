"""What a call gives back, and a model's call once its arguments are validated. Both narrow by ``.name``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.result import ToolResult

NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)


class ToolMessage(Generic[NameT_co, ContentT_co]):
    """The answer to one call. ``content`` is the handler's value untouched; ``text()`` is what the model reads.

    Written out instead of a frozen dataclass, whose constructor would cost more than the rest of the road.
    """

    __slots__ = ("attachments", "content", "metadata", "name", "output_ref", "render", "title")

    role: ClassVar[Literal["function"]] = "function"
    # Declared, not inferred: that is what lets checkers narrow a union of messages by `.name`.
    name: NameT_co
    content: ContentT_co

    def __init__(
        self,
        name: NameT_co,
        content: ContentT_co,
        title: str | None = None,
        metadata: Mapping[str, object] | None = None,
        attachments: tuple[ContentBlock, ...] = (),
        output_ref: str | None = None,
        render: Callable[[Any], str] | None = None,
    ) -> None:
        self.name = name
        self.content = content
        self.title: Final = title
        self.metadata: Final[Mapping[str, object]] = {} if metadata is None else metadata
        self.attachments: Final = attachments
        self.output_ref: Final = output_ref
        self.render: Final = render

    def __repr__(self) -> str:
        return f"ToolMessage(name={self.name!r}, content={self.content!r})"

    def text(self) -> str:
        """What the model will read: the tool's own text form, else its content as JSON."""
        if self.render is not None:
            return self.render(self.content)
        if isinstance(self.content, ContentOutput) and self.content.structured is None:
            return self.content.text
        if isinstance(self.content, BaseModel):
            return self.content.__pydantic_serializer__.to_json(
                self.content, by_alias=True, exclude_unset=True
            ).decode()
        return to_json(self.content).decode()

    def to_result(self, tool_call_id: str) -> ToolResult:
        """The same for the wire: text, data, or several blocks when media came along."""
        media = self.attachments
        if isinstance(self.content, ContentOutput):
            media = (*media, *self.content.blocks)
        if media:
            words = self.text()
            lead = (ContentBlock("text", text=words),) if words else ()
            return ToolResult(tool_call_id, self.name, "multimodal", (*lead, *media))
        if self.render is not None or isinstance(self.content, ContentOutput):
            return ToolResult(tool_call_id, self.name, "text", self.text())
        return ToolResult(tool_call_id, self.name, "data", self._data())

    def _data(self) -> object:
        # Unset means absent: a field that may be left out but not be null must not come out as null.
        if isinstance(self.content, BaseModel):
            serializer = self.content.__pydantic_serializer__
            return serializer.to_python(self.content, mode="json", by_alias=True, exclude_unset=True)
        return self.content


@dataclass(frozen=True, slots=True)
class ParsedCall(Generic[NameT_co, ContentT_co]):
    """A ``ToolCall`` whose name is known and whose arguments are validated; see ``parse_call``."""

    id: str
    name: NameT_co
    arguments: ContentT_co
