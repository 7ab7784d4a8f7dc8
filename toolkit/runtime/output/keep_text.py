"""Keeps the text of an answer whole under a ref, and shortens what the model is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from toolkit.runtime.output_writer import ContainedWriter
    from toolkit.runtime.stores.outputs import OutputCache
    from toolkit.wire.content import ContentBlock

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
