"""What becomes of an answer's text: kept whole under a ref, and shown as far as a model should read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.wire.content import ContentBlock

if TYPE_CHECKING:
    from toolkit.runtime.output.cache.store import OutputCache, OutputWriter

WORTH_KEEPING: Final = 512
"""Bytes below which a text is not kept: what would take its place in a long conversation is hardly shorter."""


class Told(NamedTuple):
    """A text as the model reads it, where the whole of it is, and whether anything is missing."""

    text: str
    ref: str | None
    is_cut: bool


class Kept(NamedTuple):
    """What a handler streamed into the cache: where it is, and how much it was."""

    ref: str | None
    size: int
    lines: int

    @classmethod
    def of(cls, writer: OutputWriter) -> Kept:
        size, lines = writer.size, writer.lines
        return cls(writer.finish(), size, lines)

    def note(self) -> str:
        """One line for the model, below an answer that holds only a part."""
        whole = f"the whole output has {self.size} bytes in {self.lines} lines"
        if self.ref is None:
            return f"[{whole}; it could not be kept: call the tool again for a smaller part]"
        return f'[{whole}; tool_output_cache reads and tool_output_cache_grep searches it by ref_id "{self.ref}"]'


class Keeper:
    """Keeps the texts of one tool for one session. The cache is opened when there is something to keep."""

    def __init__(self, cache: Callable[[], OutputCache], session_id: str, tool_name: str) -> None:
        self._cache = cache
        self._session_id = session_id
        self._tool_name = tool_name

    def tell(self, text: str, streamed: Kept | None, media: tuple[ContentBlock, ...]) -> Told:
        """The text as a model should read it, with the whole kept first."""
        if streamed is None and not media and len(text) < WORTH_KEEPING:
            return Told(text, None, False)
        from toolkit.runtime.output.cache.budget import fit_text, shortened

        cache = self._cache()
        limit = cache.text_limit
        if streamed is not None:
            # The answer holds a part of what was streamed; its line numbers are not those of the whole.
            fitted = fit_text(text, limit)
            gap = "\n[left out here]\n" if fitted.cut_bytes else ""
            return Told(f"{fitted.head}{gap}{fitted.tail}\n{streamed.note()}", streamed.ref, True)
        ref = self._put(cache, text, media)
        shown = shortened(text, limit, ref)
        return Told(shown, ref, shown is not text)

    def _put(self, cache: OutputCache, text: str, media: tuple[ContentBlock, ...]) -> str | None:
        if media:
            lead = (ContentBlock("text", text=text),) if text else ()
            return cache.put_blocks(self._session_id, (*lead, *media), tool=self._tool_name)
        return cache.put(self._session_id, text, tool=self._tool_name)
