"""Translates errors of the operating system into errors of the toolkit.

Promise: the system's own text is left out, because it may name a host path.
"""

from __future__ import annotations

import errno
from typing import Final

from toolkit.errors import FailureReason, ToolFailed, ToolkitError
from toolkit.guard.files.path import outside_error
from toolkit.guard.os_error_translation import OsErrorTranslation
from toolkit.guard.system_faults import SCARCE, describe_errno, system_fault

_FAILURES: Final[dict[int, tuple[FailureReason, str]]] = {
    errno.ENOENT: ("NOT_FOUND", "does not exist"),
    errno.ENOTDIR: ("NOT_DIRECTORY", "is not a directory, or is below something that is not a directory"),
    errno.EACCES: ("PERMISSION_DENIED", "cannot be accessed: permission denied"),
    errno.EPERM: ("PERMISSION_DENIED", "cannot be accessed: operation not permitted"),
    errno.EROFS: ("PERMISSION_DENIED", "is on a read-only file system"),
    errno.ENXIO: ("NOT_FILE", "is not a regular file"),
    errno.ENODEV: ("NOT_FILE", "is not a regular file"),
    errno.EISDIR: ("NOT_FILE", "is a directory"),
    errno.EEXIST: ("ALREADY_EXISTS", "already exists"),
    errno.EFBIG: ("TOO_LARGE", "would be larger than the file size limit"),
    errno.ENOTEMPTY: ("IO", "is a directory and is not empty"),
    errno.ELOOP: ("IO", "leads through too many symbolic links"),
    errno.EAGAIN: ("IO", "kept changing while it was being opened; try again"),
}


def to_failure(error: OSError, shown: str) -> ToolkitError:
    """The only translation of an ``OSError``. The resolvers raise ``EXDEV`` for a path that left its root."""
    number = error.errno or errno.EIO
    if number == errno.EXDEV:
        return outside_error(shown)
    if number in SCARCE:
        return system_fault(f"'{shown}' cannot be used now", describe_errno(number))
    reason, problem = _FAILURES.get(number, ("IO", f"cannot be used: {describe_errno(number)}"))
    return ToolFailed(reason, f"'{shown}' {problem}", path=shown)


def already_exists(shown: str) -> ToolFailed:
    """The failure for a file that should have been new."""
    reason, problem = _FAILURES[errno.EEXIST]
    return ToolFailed(reason, f"'{shown}' {problem}", path=shown)


def removed_root() -> ToolFailed:
    """The failure for everything below a root whose directory is gone."""
    return ToolFailed("NOT_FOUND", "the workspace, or the directory of a root, no longer exists: it was removed")


def conflict(shown: str) -> ToolFailed:
    """The failure for a file that is not the one that was read."""
    return ToolFailed("CONFLICT", f"'{shown}' has changed since it was read; read it again", path=shown)


class FileErrors(OsErrorTranslation):
    """Raises every ``OSError`` of the block as ``to_failure`` for ``shown``."""

    __slots__ = ("_shown",)

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def translate(self, error: OSError) -> ToolkitError:
        return to_failure(error, self._shown)
