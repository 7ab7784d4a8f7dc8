"""What the operating system refuses because something has run out: open files, processes, memory.

Such a fault says nothing about the call, the policy or the machine, and may be gone a moment later. So it has a reason of
its own, ``SYSTEM``, which is retriable, and nothing that was found out while it lasted is kept.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from typing import Final, Self

from toolkit.errors import ToolFailed, ToolkitError

SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ETOOMANYREFS})
"""What ``errno`` says when something has run out, whatever was being done."""
SCARCE_AT_START: Final = SCARCE | {errno.EAGAIN}
"""The same where processes are started: with EAGAIN the kernel refuses one more."""


def system_fault(what: str, why: str) -> ToolFailed:
    """The failure of what could not be done now; ``why`` is a text without paths of the host."""
    return ToolFailed("SYSTEM", f"{what}: {why}; try again later")


def find_system_fault(error: BaseException, what: str) -> ToolFailed | None:
    """The failure for an error of Python that means that something has run out; None for other errors."""
    if isinstance(error, OSError) and error.errno in SCARCE:
        return system_fault(what, describe_errno(error.errno))
    return None


def describe_errno(number: int | None) -> str:
    """What an ``errno`` means, as the system words it."""
    return os.strerror(number).lower() if number else "unknown error"


class OsErrorTranslation(ABC):
    """A block whose errors of the operating system are raised as errors of the toolkit: as ``translate`` returns them.

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
