"""The result of a call, and a model's call with validated arguments. Both narrow by ``.name``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from toolkit.runtime.output.keep_text import ShownText, StreamedOutput, TextKeeper
from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.result import ToolResult

NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)


class ToolMessage(Generic[NameT_co, ContentT_co]):
    """The answer to one call. ``content`` is the handler's value untouched; ``text()`` is what the model reads.

    Not a frozen dataclass: its constructor would cost more than the rest of the call path.
    """

    __slots__ = ("_keeper", "_shown", "_streamed", "attachments", "content", "metadata", "name", "render", "title")

    role: ClassVar[Literal["function"]] = "function"
    # Declared, not inferred, so that checkers can narrow a union of messages by `.name`.
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
        keeper: TextKeeper | None = None,
        streamed: StreamedOutput | None = None,
    ) -> None:
        self.name = name
        self.content = content
        self.title: Final = title
        self.metadata: Final[Mapping[str, object]] = {} if metadata is None else metadata
        self.attachments: Final = attachments
        self.render: Final = render
        self._keeper = keeper
        self._streamed = streamed
        self._shown: ShownText | None = None

    def __repr__(self) -> str:
        return f"ToolMessage(name={self.name!r}, content={self.content!r})"

    @property
    def output_ref(self) -> str | None:
        """The ref under which the output cache keeps the whole answer, for ``tool_output_cache``; None if it is too short
        to be kept, or could not be kept."""
        return self._show().ref

    def text(self) -> str:
        """What the model reads: the tool's own text form, or its content as JSON. A long text keeps its head and tail."""
        return self._show().text

    def _show(self) -> ShownText:
        if self._shown is None:
            words = self._own_text() if self.render is None else self.render(self.content)
            streamed, keeper = self._streamed, self._keeper
            if keeper is None:
                self._shown = ShownText(words, None if streamed is None else streamed.ref, False)
            else:
                self._shown = keeper.show(words, streamed, self._media())
        return self._shown

    def _own_text(self) -> str:
        """The whole text of the content, if the tool has no text form of its own."""
        if isinstance(self.content, ContentOutput):  # its media are sent as blocks
            has_text = self.content.text or self.content.structured is None
            return self.content.text if has_text else to_json(self.content.structured).decode()
        if isinstance(self.content, BaseModel):
            return self.content.__pydantic_serializer__.to_json(
                self.content, by_alias=True, exclude_unset=True
            ).decode()
        return to_json(self.content).decode()

    def _is_text(self) -> bool:
        """Whether the content is already text, not data."""
        return isinstance(self.content, ContentOutput)

    def _media(self) -> tuple[ContentBlock, ...]:
        if isinstance(self.content, ContentOutput):
            return (*self.attachments, *self.content.blocks)
        return self.attachments

    def to_result(self, tool_call_id: str) -> ToolResult:
        """The result for the wire: text, data, or several blocks if there are media. Data that is too long becomes text."""
        media = self._media()
        if media:
            words = self.text()
            lead = (ContentBlock("text", text=words),) if words else ()
            return ToolResult(tool_call_id, self.name, "multimodal", (*lead, *media), self.output_ref, self.content)
        if self.render is not None or self._is_text():
            return ToolResult(tool_call_id, self.name, "text", self.text(), self.output_ref, self.content)
        shown = self._show() if self._keeper is not None else None
        if shown is not None and shown.is_cut:
            return ToolResult(tool_call_id, self.name, "text", shown.text, shown.ref, self.content)
        ref = None if shown is None else shown.ref
        return ToolResult(tool_call_id, self.name, "data", self._data(), ref, self.content)

    def _data(self) -> object:
        # Unset means absent: an optional field must not become null where the schema forbids null.
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
