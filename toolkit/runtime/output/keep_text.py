"""Keeps the text of an answer whole under a ref, and shortens what the model is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from toolkit.runtime.output.cache.store import OutputCache, OutputWriter
    from toolkit.wire.content import ContentBlock

WORTH_KEEPING: Final = 512
"""Characters below which a text is not kept: the note that could replace it is hardly shorter."""

_MAX_BYTES: Final = 4
"""How many bytes a character may take."""


class ShownText(NamedTuple):
    """A text as the model reads it, the ref of the whole, and whether anything is missing."""

    text: str
    ref: str | None
    is_cut: bool
    is_pending: bool = False
    """Whether the text is shown whole and is not kept yet: it is when somebody asks for its ref. Most are never asked for,
    and keeping one takes ten times as long as a call."""


class StreamedOutput(NamedTuple):
    """What a handler streamed into the cache: its ref and its size."""

    ref: str | None
    size: int
    lines: int

    @classmethod
    def finish(cls, writer: OutputWriter) -> StreamedOutput:
        size, lines = writer.size, writer.lines
        return cls(writer.finish(), size, lines)

    def note(self) -> str:
        """A line for the model, below an answer that holds only a part of the output."""
        whole = f"the full output has {self.size} bytes in {self.lines} lines"
        if self.ref is None:
            return f"[{whole}; it could not be stored: call the tool again for a smaller part]"
        return (
            f'[{whole}; read it with tool_output_cache or search it with tool_output_cache_grep, ref_id "{self.ref}"]'
        )


class TextKeeper:
    """Keeps the texts of one tool for one session. The cache is opened at its first use."""

    def __init__(self, cache: Callable[[], OutputCache], session_id: str, tool_name: str) -> None:
        self._cache = cache
        self._session_id = session_id
        self._tool_name = tool_name
        self._opened: OutputCache | None = None

    def show(self, text: str, streamed: StreamedOutput | None, media: tuple[ContentBlock, ...]) -> ShownText:
        """Returns the text as the model should read it; keeps the whole text if that is only a part of it."""
        if streamed is None and not media and len(text) < WORTH_KEEPING:
            return ShownText(text, None, False)
        cache = self._opened or self._open()
        limit = cache.text_limit
        if streamed is None and len(text) <= limit // _MAX_BYTES:
            return ShownText(text, None, False, True)
        from toolkit.runtime.output.cache.budget import fit_text, shorten

        if streamed is not None:
            # The answer is only a part of what was streamed; its line numbers mean nothing in the whole.
            fitted = fit_text(text, limit)
            gap = "\n[omitted here]\n" if fitted.cut_bytes else ""
            return ShownText(f"{fitted.head}{gap}{fitted.tail}\n{streamed.note()}", streamed.ref, True)
        if not fit_text(text, limit).cut_bytes:
            return ShownText(text, None, False, True)
        ref = self._put(cache, text, media)
        return ShownText(shorten(text, limit, ref), ref, True)

    def keep(self, shown: ShownText, media: tuple[ContentBlock, ...]) -> ShownText:
        """Keeps a text that was shown whole, if it is not kept yet. Never fails: without a place there is no ref."""
        if not shown.is_pending:
            return shown
        try:
            ref = self._put(self._opened or self._open(), shown.text, media)
        except Exception:
            # The caller has read the answer already, and asks only for a ref.
            import logging

            logging.getLogger("toolkit.cache").warning(
                "an output of %r could not be stored", self._tool_name, exc_info=True
            )
            ref = None
        return ShownText(shown.text, ref, False)

    def _open(self) -> OutputCache:
        self._opened = cache = self._cache()
        return cache

    def _put(self, cache: OutputCache, text: str, media: tuple[ContentBlock, ...]) -> str | None:
        if media:
            from toolkit.wire.content import ContentBlock

            lead = (ContentBlock("text", text=text),) if text else ()
            return cache.put_blocks(self._session_id, (*lead, *media), tool=self._tool_name)
        return cache.put(self._session_id, text, tool=self._tool_name)
