"""The cache for a toolkit that has no place to keep outputs."""

from __future__ import annotations

from toolkit.runtime.output.cache.cached_output import CachedOutput
from toolkit.runtime.stores.outputs import CountingWriter, OutputCache, OutputWriter, not_kept


class NullCache(OutputCache):
    """Keeps nothing: it returns no refs, and finds none."""

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        return None

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        return CountingWriter()

    def open(self, session_id: str, ref: str) -> CachedOutput:
        raise not_kept()

    def close(self) -> None:
        pass
