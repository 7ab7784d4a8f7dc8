"""Blocks whose errors of the operating system are raised as errors of the toolkit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from toolkit.errors import ToolkitError


class OsErrorTranslation(ABC):
    """Raises an ``OSError`` that leaves its block as ``translate`` returns it.

    Not a generator: from Python 3.12 on, its frame and that of ``contextlib`` would form a cycle with the error that is
    raised, and what the failed operation held would stay until the next garbage collection.
    """

    __slots__ = ()

    @abstractmethod
    def translate(self, error: OSError) -> ToolkitError: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError):
            raise self.translate(error) from None
