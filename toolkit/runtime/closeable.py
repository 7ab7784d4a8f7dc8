"""Base classes for what is closed at the end of a ``with`` block."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closeable:
    """Closed at the end of a ``with`` block."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncCloseable(Closeable):
    """Closed at the end of a ``with`` or an ``async with`` block."""

    __slots__ = ()

    async def close_async(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close_async()
