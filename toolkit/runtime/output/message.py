"""What a call gives back, and a model's call once its arguments are validated. Both narrow by ``.name``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from toolkit.runtime.output.keep_text import Keeper, Kept, Told
from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.result import ToolResult

NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)


class ToolMessage(Generic[NameT_co, ContentT_co]):
    """The answer to one call. ``content`` is the handler's value untouched; ``text()`` is what the model reads.

    Written out instead of a frozen dataclass, whose constructor would cost more than the rest of the road.
    """

    __slots__ = ("_keeper", "_streamed", "_told", "attachments", "content", "metadata", "name", "render", "title")

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
        render: Callable[[Any], str] | None = None,
        keeper: Keeper | None = None,
        streamed: Kept | None = None,
    ) -> None:
        self.name = name
        self.content = content
        self.title: Final = title
        self.metadata: Final[Mapping[str, object]] = {} if metadata is None else metadata
        self.attachments: Final = attachments
        self.render: Final = render
        self._keeper = keeper
        self._streamed = streamed
        self._told: Told | None = None

    def __repr__(self) -> str:
        return f"ToolMessage(name={self.name!r}, content={self.content!r})"

    @property
    def output_ref(self) -> str | None:
        """Where the output cache keeps the whole of the answer, for ``tool_output_cache``; None if it is too short to
        be kept, or could not be."""
        return self._tell().ref

    def text(self) -> str:
        """What the model will read: the tool's own text form, else its content as JSON. Of a long one, head and tail."""
        return self._tell().text

    def _tell(self) -> Told:
        if self._told is None:
            words = self._own_text() if self.render is None else self.render(self.content)
            streamed, keeper = self._streamed, self._keeper
            if keeper is None:
                self._told = Told(words, None if streamed is None else streamed.ref, False)
            else:
                self._told = keeper.tell(words, streamed, self._media())
        return self._told

    def _own_text(self) -> str:
        """The whole text of content whose tool has no text form."""
        if isinstance(self.content, ContentOutput):  # its media stand beside the text
            said = self.content.text or self.content.structured is None
            return self.content.text if said else to_json(self.content.structured).decode()
        if isinstance(self.content, BaseModel):
            return self.content.__pydantic_serializer__.to_json(
                self.content, by_alias=True, exclude_unset=True
            ).decode()
        return to_json(self.content).decode()

    def _is_text(self) -> bool:
        """Whether the content is text already, and no data."""
        return isinstance(self.content, ContentOutput)

    def _media(self) -> tuple[ContentBlock, ...]:
        if isinstance(self.content, ContentOutput):
            return (*self.attachments, *self.content.blocks)
        return self.attachments

    def to_result(self, tool_call_id: str) -> ToolResult:
        """The same for the wire: text, data, or several blocks when media came along. Data too long becomes text."""
        media = self._media()
        if media:
            words = self.text()
            lead = (ContentBlock("text", text=words),) if words else ()
            return ToolResult(tool_call_id, self.name, "multimodal", (*lead, *media), self.output_ref)
        if self.render is not None or self._is_text():
            return ToolResult(tool_call_id, self.name, "text", self.text(), self.output_ref)
        told = self._tell() if self._keeper is not None else None
        if told is not None and told.is_cut:
            return ToolResult(tool_call_id, self.name, "text", told.text, told.ref)
        return ToolResult(tool_call_id, self.name, "data", self._data(), None if told is None else told.ref)

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
