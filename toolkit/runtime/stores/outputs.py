"""The interface of output caches.

Every operation belongs to a session, and a ref is valid only in its session. Keeping an output never fails a call: if it
cannot be kept, there is no ref and the log says why. A cache that raises is treated the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Self

from toolkit.errors import ToolFailed
from toolkit.runtime.output.cache.cached_output import BLOCKS_TYPE, CachedOutput, encode_blocks
from toolkit.runtime.output.cache.index import LineIndex
from toolkit.wire.content import ContentBlock

TEXT_LIMIT: Final = 50 * 1024
MAX_GATHERED: Final = 16 * 1024 * 1024


class OutputWriter(ABC):
    """Takes one output in pieces; for one thread at a time. The end of a ``with`` block discards an unfinished output."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes written so far, whether or not they could be kept."""

    @property
    @abstractmethod
    def lines(self) -> int:
        """Lines written so far; a last one without a line feed counts."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Appends to the output; never fails."""

    @abstractmethod
    def finish(self) -> str | None:
        """Keeps the output; returns its ref, or None if it could not be kept or was already finished or discarded."""

    @abstractmethod
    def discard(self) -> None:
        """Drops the output, unless it is finished."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()


class CountingWriter(OutputWriter):
    """Counts what is written, and keeps nothing of it."""

    def __init__(self) -> None:
        self._index = LineIndex()

    @property
    def size(self) -> int:
        return self._index.size

    @property
    def lines(self) -> int:
        return self._index.lines

    def write(self, data: bytes) -> None:
        self._index.feed(data)

    def finish(self) -> str | None:
        return None

    def discard(self) -> None:
        pass


class OutputCache(ABC):
    """Keeps whole tool outputs, each under an unguessable ref that belongs to one session.

    A cache of your own needs ``put``, ``open`` and ``close``; ``toolkit.testing.OutputCacheLaws`` tests it. Its methods are
    called in several threads at once. ``AsyncOutputCache`` is the same for code that must be awaited.

    >>> import secrets
    >>> from toolkit.stores import CachedOutput, not_kept
    >>> class InMemory(OutputCache):
    ...     def __init__(self) -> None:
    ...         self._kept: dict[tuple[str, str], CachedOutput] = {}
    ...     def put(self, session_id, data, *, tool, media_type=None):
    ...         ref = secrets.token_urlsafe(24)
    ...         self._kept[session_id, ref] = CachedOutput.of(data, tool=tool, media_type=media_type)
    ...         return ref
    ...     def open(self, session_id, ref):
    ...         if (session_id, ref) not in self._kept:
    ...             raise not_kept()
    ...         return self._kept[session_id, ref]
    ...     def close(self) -> None:
    ...         pass
    >>> cache = InMemory()
    >>> ref = cache.put("session", "one\\ntwo", tool="read_file")
    >>> [line.text for line in cache.open("session", ref).lines()]
    ['one', 'two']
    """

    text_limit: int = TEXT_LIMIT
    """How many bytes of one output a model is shown."""

    @abstractmethod
    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        """Keeps an output; returns its ref, or None if it could not be kept."""

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        """Keeps an output that comes in pieces. Unless a cache does better, they are gathered in memory, up to 16 MiB."""
        return GatheringWriter(self, session_id, tool, media_type)

    @abstractmethod
    def open(self, session_id: str, ref: str) -> CachedOutput:
        """Opens an output of this session. Any other ref is NOT_FOUND, always with the same message."""

    @abstractmethod
    def close(self) -> None:
        """Closes what is open; the outputs stay."""

    def put_blocks(self, session_id: str, blocks: Sequence[ContentBlock], *, tool: str) -> str | None:
        """Keeps content blocks, which ``CachedOutput.blocks`` returns."""
        return self.put(session_id, encode_blocks(tuple(blocks)), tool=tool, media_type=BLOCKS_TYPE)


class GatheringWriter(CountingWriter):
    """Gathers an output in memory and puts it at the end. One that gets too long is not kept."""

    def __init__(self, cache: OutputCache, session_id: str, tool: str, media_type: str | None) -> None:
        super().__init__()
        self._cache = cache
        self._session_id = session_id
        self._tool = tool
        self._media_type = media_type
        self._gathered: bytearray | None = bytearray()

    def write(self, data: bytes) -> None:
        super().write(data)
        if self._gathered is not None and self.size <= MAX_GATHERED:
            self._gathered += data
        else:
            self._gathered = None

    def finish(self) -> str | None:
        data, self._gathered = self._gathered, None
        if data is None:
            return None
        return self._cache.put(self._session_id, bytes(data), tool=self._tool, media_type=self._media_type)

    def discard(self) -> None:
        self._gathered = None


class AsyncOutputCache(ABC):
    """An ``OutputCache`` whose methods are awaited. The toolkit runs them in an event loop of its own, in another thread."""

    text_limit: int = TEXT_LIMIT
    """How many bytes of one output a model is shown."""

    @abstractmethod
    async def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        """Keeps an output; returns its ref, or None if it could not be kept."""

    @abstractmethod
    async def open(self, session_id: str, ref: str) -> CachedOutput:
        """Opens an output of this session. Any other ref is NOT_FOUND, always with the same message."""

    @abstractmethod
    async def close(self) -> None:
        """Closes what is open; the outputs stay."""


def not_kept() -> ToolFailed:
    """The one error for every ref that is not accepted: it must not reveal whether another session has it."""
    return ToolFailed(
        "NOT_FOUND",
        "no output is stored under this ref_id: it is mistyped, or the output is too old or was removed to make room "
        "for newer ones; run the tool again to get its output",
    )
