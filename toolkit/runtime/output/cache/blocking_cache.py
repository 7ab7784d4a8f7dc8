"""An async output cache for the code that keeps outputs, which is sync."""

from __future__ import annotations

from typing import Final

from toolkit.runtime.output.cache.cached_output import CachedOutput
from toolkit.runtime.stores.outputs import AsyncOutputCache, OutputCache
from toolkit.runtime.stores.waiting import wait_for


class BlockingCache(OutputCache):
    """Waits for each operation of an async cache, which runs in the event loop of the stores."""

    def __init__(self, cache: AsyncOutputCache) -> None:
        self._cache: Final = cache
        self.text_limit = cache.text_limit

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        return wait_for(self._cache.put(session_id, data, tool=tool, media_type=media_type))

    def open(self, session_id: str, ref: str) -> CachedOutput:
        return wait_for(self._cache.open(session_id, ref))

    def close(self) -> None:
        wait_for(self._cache.close())
