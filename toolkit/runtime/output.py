"""The result of a call: its typed content, the text that a model reads, and the ref of what that text leaves out.

A union of results narrows by ``.name``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
)

from pydantic import BaseModel
from pydantic_core import from_json, to_json
from typing_extensions import TypeIs

from toolkit.schema.exact import holds_scalars
from toolkit.schema.models import ToolModel
from toolkit.wire.call import ResultKind, ToolResult

if TYPE_CHECKING:
    from toolkit.runtime.output_writer import ContainedWriter
    from toolkit.runtime.stores.outputs import OutputCache
    from toolkit.wire.content import ContentBlock, ContentOutput


# ----------------------------------------------------------------------------------------------------------------------
# Keeps the text of an answer whole under a ref, and shortens what the model is shown.

ABOUT_REPEATING: Final = "the call has run, so repeat it only if that is harmless"
"""What a model must know when the rest of an output is lost: a command that ran must not run again because of that."""

WORTH_KEEPING: Final = 512
"""Characters below which a text is not kept: the note that could replace it is hardly shorter."""

_MAX_BYTES: Final = 4
"""How many bytes a character may take."""


class ShownText(NamedTuple):
    """A text as the model reads it, the ref of the whole, and whether anything is missing."""

    text: str
    ref: str | None
    is_cut: bool
    problem: str | None = None
    """Why a text that is only shown in part is not kept, if it is not: for the program, not for the model."""
    is_pending: bool = False
    """Whether the text is shown whole and is not kept yet: it is when somebody asks for its ref. Most are never asked for,
    and keeping one takes ten times as long as a call."""


class StreamedOutput(NamedTuple):
    """What a handler streamed into the cache: its ref and its size."""

    ref: str | None
    size: int
    lines: int
    problem: str | None = None

    @classmethod
    def finish(cls, writer: ContainedWriter) -> StreamedOutput:
        size, lines = writer.size, writer.lines
        return cls(writer.finish(), size, lines, writer.problem)

    def note(self) -> str:
        """A line for the model, below an answer that holds only a part of the output."""
        whole = f"the full output has {self.size} bytes in {self.lines} lines"
        if self.ref is None:
            return f"[{whole}; it could not be stored; {ABOUT_REPEATING}]"
        return (
            f'[{whole}; read it with tool_output_cache or search it with tool_output_cache_grep, ref_id "{self.ref}"]'
        )


class TextKeeper:
    """Keeps the texts of one tool for one session. The cache is opened at its first use."""

    def __init__(self, cache: Callable[[], OutputCache], session_id: str, tool_name: str) -> None:
        self._cache = cache
        self._session_id = session_id
        self._tool_name = tool_name
        self._limit: int | None = None

    def shows_at_once(self, text: str, streamed: StreamedOutput | None, media: tuple[ContentBlock, ...]) -> bool:
        """Whether ``show`` need not wait for the cache: the text is short, or it is known to fit."""
        if streamed is None and not media and len(text) < WORTH_KEEPING:
            return True
        return self._limit is not None and (streamed is not None or len(text) <= self._limit // _MAX_BYTES)

    def show(
        self,
        text: str,
        streamed: StreamedOutput | None,
        media: tuple[ContentBlock, ...],
        left: float | None = None,
    ) -> ShownText:
        """Returns the text as the model should read it; keeps the whole text if that is only a part of it.

        Never fails: what the cache raises costs the ref, and is reported in ``problem``. So does a cache that takes longer
        than the call has ``left``.
        """
        if streamed is None and not media and len(text) < WORTH_KEEPING:
            return ShownText(text, None, False)
        limit = self._limit or self._find_limit()
        if streamed is None and len(text) <= limit // _MAX_BYTES:
            return ShownText(text, None, False, None, True)
        from toolkit.runtime.stores.budget import fit_text, shorten

        if streamed is not None:
            # The answer is only a part of what was streamed; its line numbers mean nothing in the whole.
            fitted = fit_text(text, limit)
            gap = "\n[omitted here]\n" if fitted.cut_bytes else ""
            shown = f"{fitted.head}{gap}{fitted.tail}\n{streamed.note()}"
            return ShownText(shown, streamed.ref, True, streamed.problem)
        if not fit_text(text, limit).cut_bytes:
            return ShownText(text, None, False, None, True)
        ref, problem = self._put_contained(text, media, left)
        return ShownText(shorten(text, limit, ref), ref, True, problem)

    def keep(self, shown: ShownText, media: tuple[ContentBlock, ...]) -> ShownText:
        """Keeps a text that was shown whole, if it is not kept yet. Never fails: without a place there is no ref."""
        if not shown.is_pending:
            return shown
        ref, _ = self._put_contained(shown.text, media)
        return ShownText(shown.text, ref, False)

    def _find_limit(self) -> int:
        """How many bytes are shown: what the cache says, which must be opened for that."""
        try:
            self._limit = self._cache().text_limit
        except Exception as error:
            from toolkit.runtime.output_writer import report_lost
            from toolkit.runtime.stores.outputs import TEXT_LIMIT

            report_lost(self._tool_name, error)
            return TEXT_LIMIT
        return self._limit

    def _put_contained(
        self, text: str, media: tuple[ContentBlock, ...], left: float | None = None
    ) -> tuple[str | None, str | None]:
        """The ref, or why there is none."""
        from toolkit.runtime.output_writer import NOT_KEPT, report_lost
        from toolkit.runtime.stores.waiting import seconds_for_store, use_store

        try:
            ref = use_store(lambda: self._put(self._cache(), text, media), seconds_for_store(left))
        except Exception as error:
            return None, report_lost(self._tool_name, error)
        return ref, NOT_KEPT if ref is None else None

    def _put(self, cache: OutputCache, text: str, media: tuple[ContentBlock, ...]) -> str | None:
        if media:
            from toolkit.wire.content import ContentBlock

            lead = (ContentBlock("text", text=text),) if text else ()
            return cache.put_blocks(self._session_id, (*lead, *media), tool=self._tool_name)
        return cache.put(self._session_id, text, tool=self._tool_name)


NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class MessageForm:
    """What the messages of one tool have in common: how their content becomes text, and where a long text is kept."""

    render: Callable[[Any], str] | None = None
    """The tool's own text form."""
    keeper: TextKeeper | None = None
    to_json: Callable[[Any], bytes] | None = None
    """Writes the content as JSON; None if that is not known before there is a content."""


class Reported(NamedTuple):
    """What a handler added to its answer."""

    title: str | None
    metadata: Mapping[str, object] | None
    attachments: tuple[ContentBlock, ...]
    streamed: StreamedOutput | None


class NewMessage(Protocol):
    """Makes the message of a tool: ``ToolMessage``, or what an output of another type needs."""

    def __call__(
        self, name: str, content: Any, form: MessageForm, reported: Reported | None = None, /
    ) -> ToolMessage[Any, Any]: ...


class ToolMessage(Generic[NameT_co, ContentT_co]):
    """The answer to one call. ``content`` is the handler's value untouched; ``text()`` is what the model reads."""

    __slots__ = ("_form", "_reported", "_shown", "content", "name")

    role: ClassVar[Literal["function"]] = "function"
    # Declared, not inferred, so that checkers can narrow a union of messages by `.name`.
    name: NameT_co
    content: ContentT_co
    _form: MessageForm
    _reported: Reported | None
    _shown: ShownText | None

    def __init__(
        self, name: NameT_co, content: ContentT_co, form: MessageForm, reported: Reported | None = None
    ) -> None:
        self.name = name
        self.content = content
        self._form = form
        self._reported = reported
        self._shown = None

    def __repr__(self) -> str:
        return f"ToolMessage(name={self.name!r}, content={self.content!r})"

    @property
    def title(self) -> str | None:
        """A line for people, if the tool set one."""
        return None if self._reported is None else self._reported.title

    @property
    def metadata(self) -> Mapping[str, object]:
        """What the tool reported to the program. ``output_not_kept`` says why the rest of a text that was cut is lost."""
        given = {} if self._reported is None else self._reported.metadata or {}
        shown = self._shown
        if shown is None or shown.problem is None:
            return given
        return {**given, "output_not_kept": shown.problem}

    @property
    def attachments(self) -> tuple[ContentBlock, ...]:
        """Media that the tool added to its answer."""
        return () if self._reported is None else self._reported.attachments

    @property
    def render(self) -> Callable[[Any], str] | None:
        """The tool's own text form."""
        return self._form.render

    @property
    def output_ref(self) -> str | None:
        """The ref under which the output cache keeps the whole answer, for ``tool_output_cache``; None if it is too short
        to be kept, or could not be kept. An answer that is shown whole is kept when its ref is first read."""
        shown = self._show()
        if shown.is_pending and self._form.keeper is not None:
            self._shown = shown = self._form.keeper.keep(shown, self._media())
        return shown.ref

    def text(self) -> str:
        """What the model reads: the tool's own text form, or its content as JSON. A long text keeps its head and tail."""
        write = self._form.to_json
        if write is not None and self._reported is None and self._shown is None:
            words = write(self.content).decode()
            if len(words) < WORTH_KEEPING:  # most answers: the text is everything there is to show
                return words
            self._shown = self._keep(words)
        return self._show().text

    async def text_async(self) -> str:
        """The same for code in an event loop, which goes on while a long text is being kept."""
        await self._show_async()
        return self.text()

    async def to_result_async(self, tool_call_id: str) -> ToolResult:
        """``to_result`` for code in an event loop, which goes on while a long text is being kept."""
        write = self._form.to_json
        if write is not None and self._reported is None and self._shown is None:
            written = write(self.content)
            if len(written) < WORTH_KEEPING:
                return ToolResult(tool_call_id, self.name, "data", from_json(written), None, self.content)
        await self._show_async()
        return self.to_result(tool_call_id)

    def show_within(self, left: float) -> None:
        """Makes the text now, while the call that returns it still has so many seconds."""
        if self._shown is None and self._form.keeper is not None:
            self._shown = self._keep(self._words(), left)

    async def show_within_async(self, left: float) -> None:
        """The same, awaited."""
        await self._show_async(left)

    async def _show_async(self, left: float | None = None) -> None:
        """Does what ``_show`` does; waits for the output cache in another thread."""
        keeper = self._form.keeper
        if self._shown is not None or keeper is None:
            return
        words = self._words()
        streamed = None if self._reported is None else self._reported.streamed
        if keeper.shows_at_once(words, streamed, self._media()):
            self._shown = self._keep(words)
            return
        from toolkit.runtime.stores.waiting import use_store_async

        self._shown = await use_store_async(lambda: self._keep(words, left))

    def _words(self) -> str:
        """The whole text."""
        render = self._form.render
        return self._own_text() if render is None else render(self.content)

    def _show(self) -> ShownText:
        if self._shown is None:
            self._shown = self._keep(self._words())
        return self._shown

    def _keep(self, words: str, left: float | None = None) -> ShownText:
        keeper, streamed = self._form.keeper, None if self._reported is None else self._reported.streamed
        if keeper is None:
            return ShownText(words, None if streamed is None else streamed.ref, False)
        return keeper.show(words, streamed, self._media(), left)

    def _own_text(self) -> str:
        """The whole text of the content, if the tool has no text form of its own."""
        if _carries_content(self.content):  # its media are sent as blocks
            has_text = self.content.text or self.content.structured is None
            return self.content.text if has_text else to_json(self.content.structured).decode()
        if isinstance(self.content, BaseModel):
            return self.content.__pydantic_serializer__.to_json(
                self.content, by_alias=True, exclude_unset=True
            ).decode()
        return to_json(self.content).decode()

    def _is_text(self) -> bool:
        """Whether the content is already text, not data."""
        return _carries_content(self.content)

    def _media(self) -> tuple[ContentBlock, ...]:
        attached = () if self._reported is None else self._reported.attachments
        return (*attached, *self.content.blocks) if _carries_content(self.content) else attached

    def to_result(self, tool_call_id: str) -> ToolResult:
        """The result for the wire: text, data, or several blocks if there are media. Data that is too long becomes text."""
        write = self._form.to_json
        if write is not None and self._reported is None and self._shown is None:
            written = write(self.content)
            if len(written) < WORTH_KEEPING:
                # Reading the text again is faster than a second dump.
                return ToolResult(tool_call_id, self.name, "data", from_json(written), None, self.content)
            self._shown = self._keep(written.decode())
        media = self._media()
        if media:
            from toolkit.wire.content import ContentBlock

            words = self.text()
            lead = (ContentBlock("text", text=words),) if words else ()
            return self._result(tool_call_id, "multimodal", (*lead, *media))
        if self.render is not None or self._is_text():
            return self._result(tool_call_id, "text", self.text())
        shown = None if self._form.keeper is None else self._show()
        if shown is not None and shown.is_cut:
            return self._result(tool_call_id, "text", shown.text)
        return self._result(tool_call_id, "data", self._data())

    def _result(self, tool_call_id: str, kind: ResultKind, value: object) -> ToolResult:
        """A result that has the ref of this message."""
        shown = self._shown
        known = None if shown is None else shown.ref
        result = ToolResult(tool_call_id, self.name, kind, value, known, self.content)
        if known is None and (self._form.keeper is not None or self._reported is not None):
            result._find_ref_with(lambda: self.output_ref)
        return result

    def _data(self) -> object:
        # Unset means absent: an optional field must not become null where the schema forbids null.
        if isinstance(self.content, BaseModel):
            serializer = self.content.__pydantic_serializer__
            return serializer.to_python(self.content, mode="json", by_alias=True, exclude_unset=True)
        return self.content


def _carries_content(value: object) -> TypeIs[ContentOutput]:
    return isinstance(value, ToolModel) and value.__carries_content__


def json_writer(model: type[ToolModel]) -> Callable[[Any], bytes]:
    """Writes instances of a class as JSON: wire names, and what was given. Unset means absent: an optional field must not
    become null where the schema forbids null."""
    write = model.__pydantic_serializer__.to_json
    optional = [name for name, field in model.model_fields.items() if not field.is_required()]
    if (
        holds_scalars(model)
        and model.model_config.get("serialize_by_alias")
        and model.__omissible__.issuperset(optional)
        and not model.model_computed_fields
    ):
        return write  # it writes what was given anyway; options would cost half as much again
    return partial(write, by_alias=True, exclude_unset=True)
