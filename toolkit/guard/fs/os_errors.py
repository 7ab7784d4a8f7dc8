"""What the system says, in the words of the toolkit.

Promise: the system's own text is left out, as it may name a host path.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from toolkit.errors import FailureReason, ToolFailed, ToolkitError
from toolkit.guard.fs.path import outside

_FAILURES: Final[dict[int, tuple[FailureReason, str]]] = {
    errno.ENOENT: ("NOT_FOUND", "does not exist"),
    errno.ENOTDIR: ("NOT_DIRECTORY", "is not a directory, or lies below something that is none"),
    errno.EACCES: ("PERMISSION_DENIED", "may not be accessed: permission denied"),
    errno.EPERM: ("PERMISSION_DENIED", "may not be accessed: not permitted"),
    errno.EROFS: ("PERMISSION_DENIED", "lies on a file system that is read-only"),
    errno.ENXIO: ("NOT_FILE", "is not a regular file"),
    errno.ENODEV: ("NOT_FILE", "is not a regular file"),
    errno.EISDIR: ("NOT_FILE", "is a directory"),
    errno.EEXIST: ("ALREADY_EXISTS", "exists already"),
    errno.EFBIG: ("TOO_LARGE", "would be larger than a file may be here"),
    errno.ENOTEMPTY: ("IO", "is a directory that is not empty"),
    errno.ELOOP: ("IO", "has too many symbolic links"),
    errno.EAGAIN: ("IO", "kept changing while it was being opened"),
}


def failure(error: OSError, shown: str) -> ToolkitError:
    """The one translation of an ``OSError``; ``EXDEV`` is how the resolvers say that a path left its root."""
    number = error.errno or errno.EIO
    if number == errno.EXDEV:
        return outside(shown)
    reason, words = _FAILURES.get(number, ("IO", f"cannot be used: {os.strerror(number).lower()}"))
    return ToolFailed(reason, f"'{shown}' {words}", path=shown)


def changed(shown: str) -> ToolFailed:
    """The failure of who expected something else there."""
    return ToolFailed("CONFLICT", f"'{shown}' has changed since it was read; read it again", path=shown)


@contextmanager
def told(shown: str) -> Iterator[None]:
    """Every ``OSError`` of the block as a ``failure`` of ``shown``."""
    try:
        yield
    except OSError as error:
        raise failure(error, shown) from None
