"""Paths as text: which ones are accepted, and what is said when one cannot be used.

Nothing here touches the disk. A ``SandboxPath`` is well formed, not proven safe: whether it stays inside its root is
decided while it is opened (``resolve.py``), never from its text.
"""

from __future__ import annotations

import contextlib
import errno
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.errors import FailureReason, InvalidArguments, SandboxViolation, ToolFailed, ToolkitError
from toolkit.system_faults import SCARCE, OsErrorTranslation, describe_errno, system_fault
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.files.place import Names


# The kernel's limit of 4096 includes the closing NUL.
MAX_PATH_BYTES: Final = 4095
MAX_NAME_BYTES: Final = 255


@dataclass(frozen=True, slots=True)
class SandboxPath:
    """A path relative to the workspace, or to the extra root named by ``root``, as the caller wrote it.

    Promise (of ``parse``): no NUL, no lone surrogates, no name or path longer than the kernel accepts, not absolute.
    ``~``, ``$HOME``, ``%2e`` and backslashes have no special meaning.
    Limit: ``..`` parts are kept, because only the kernel knows where ``link/..`` leads.
    """

    parts: tuple[str, ...]
    wants_directory: bool = False
    root: str = ""

    @property
    def text(self) -> str:
        """The parts joined by ``/``; ``.`` for the root itself."""
        return "/".join(self.parts) or "."

    @property
    def shown(self) -> str:
        """How results and messages name it: relative to the workspace, else absolute. It can be used as a path again."""
        return display(self.text if not self.root else "/".join((self.root.rstrip("/"), *self.parts)) or "/")

    @classmethod
    def parse(cls, text: object, root: str, extra: Sequence[str] = ()) -> SandboxPath:
        """Check ``text``. An absolute path below ``root``, compared name by name, is made relative to it.

        Otherwise it is made relative to the first of ``extra`` that it is below.

        >>> SandboxPath.parse("/ws/src//./a.py", root="/ws").text
        'src/a.py'
        """
        if not isinstance(text, str):
            raise InvalidArguments(f"a path must be a string, not {type(text).__name__}")
        _refuse_malformed(text)
        names = split_names(text)
        wants_directory = text.endswith(("/", "/."))
        if not text.startswith("/"):
            return cls(tuple(names), wants_directory)
        for home in (root, *extra):
            top = split_names(home)
            if names[: len(top)] == top:
                return cls(tuple(names[len(top) :]), wants_directory, "" if home == root else home)
        raise outside_error(text)


def outside_error(text: str) -> SandboxViolation:
    """The only error for an escape. It does not repeat an absolute path, which could reveal something about the host."""
    subject = "the absolute path" if text.startswith("/") else f"'{display(text)}'"
    return SandboxViolation(
        f"{subject} is outside the workspace (absolute links count as outside); give a path below it"
    )


def _refuse_malformed(text: str) -> None:
    if not text:
        raise InvalidArguments("a path must not be empty; '.' is the workspace itself")
    if "\0" in text:
        raise InvalidArguments("a path must not contain a NUL character")
    try:
        data = text[: MAX_PATH_BYTES + 1].encode()  # the copy is bounded even if the text is huge
    except UnicodeEncodeError:
        raise InvalidArguments("a path must not contain lone surrogates") from None
    if len(data) > MAX_PATH_BYTES:
        raise InvalidArguments(f"a path must not be longer than {MAX_PATH_BYTES} bytes")
    if max(map(len, data.split(b"/"))) > MAX_NAME_BYTES:
        raise InvalidArguments(f"a name in a path must not be longer than {MAX_NAME_BYTES} bytes")


def split_names(text: str) -> list[str]:
    """The names of a path, without empty ones and ``.``."""
    return [name for name in text.split("/") if name not in ("", ".")]


def is_entry_name(name: str) -> bool:
    """Whether it can be the name of an entry in a directory: neither a path, nor the directory itself or the one above it.

    >>> is_entry_name("a"), is_entry_name(".."), is_entry_name("a/b")
    (True, False, False)
    """
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


# -- errors ------------------------------------------------------------------------------------------------------------

# What an error of the operating system means. Its own text is left out, because it may name a host path.
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


def not_a_file(mode: int, shown: str) -> ToolFailed:
    """The failure for what is there instead of a regular file."""
    problem = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
    return ToolFailed("NOT_FILE", f"'{shown}' {problem}", path=shown)


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


# -- changes -----------------------------------------------------------------------------------------------------------

Accept: TypeAlias = Callable[[str, bytes | None], None]
"""Tells the review of running commands what a file tool changed, so that it is not undone: the real path, the new content."""
AcceptChanges: TypeAlias = Callable[[], contextlib.AbstractContextManager[Accept]]
"""Entered around every change of files."""


@contextlib.contextmanager
def ignore_changes() -> Iterator[Accept]:
    """For files that nobody reviews."""
    yield lambda path, data: None


def absolute(names: Names) -> str:
    """A real path as text."""
    return "/" + "/".join(names)
