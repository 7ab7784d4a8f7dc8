"""The cache where there is no place for one: it counts what comes and keeps nothing of it."""

from __future__ import annotations

from toolkit.runtime.output.cache.index import LineIndex
from toolkit.runtime.output.cache.output import CachedOutput
from toolkit.runtime.output.cache.store import OutputCache, OutputWriter, not_kept


class NothingKept(OutputCache):
    """Gives no refs, and knows none."""

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        return None

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        return _Counter()

    def open(self, session_id: str, ref: str) -> CachedOutput:
        raise not_kept()

    def close(self) -> None:
        pass


class _Counter(OutputWriter):
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
