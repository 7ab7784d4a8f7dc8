"""Reads and checks whole files, with a limit on their size; and lists directories as paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.files.handles import EntryNames, OpenFile
    from toolkit.guard.files.path import SandboxPath

MAX_WHOLE_FILE: Final = 10 * 1024 * 1024
"""How many bytes are read or written at once, unless the caller sets another limit."""


def read_whole(file: OpenFile, max_bytes: int) -> bytes:
    """The content of a file; ``TOO_LARGE`` if it is longer than that, also if it grows meanwhile."""
    data = b"" if file.size > max_bytes else file.read(max_bytes + 1)
    if file.size > max_bytes or len(data) > max_bytes:
        size = max(file.size, len(data))
        raise ToolFailed(
            "TOO_LARGE",
            f"'{file.path}' has {size} bytes, and at most {max_bytes} are read at once; read it in parts with open_file, "
            f"or set max_bytes",
            path=file.path,
            size=size,
        )
    return data


def check_size(data: bytes, shown: str, max_bytes: int) -> None:
    """Refuses to write more than that."""
    if len(data) > max_bytes:
        raise ToolFailed(
            "TOO_LARGE",
            f"'{shown}' would have {len(data)} bytes, and at most {max_bytes} are written at once; nothing was changed",
            path=shown,
            size=len(data),
        )


def decode(data: bytes, encoding: str, shown: str) -> str:
    """The text of a file; ``BINARY_NOT_SUPPORTED`` if it is not in this encoding."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ToolFailed(
            "BINARY_NOT_SUPPORTED",
            f"'{shown}' is not {encoding} text: the byte at position {error.start} does not fit; read it with "
            f"another encoding, or with read_bytes",
            path=shown,
        ) from None


def encode(text: str, encoding: str, shown: str) -> bytes:
    """The text as bytes; refuses characters that the encoding does not have."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ToolFailed(
            "BINARY_NOT_SUPPORTED",
            f"the text for '{shown}' cannot be written as {encoding}: the character at position {error.start} does "
            f"not fit; nothing was changed",
            path=shown,
        ) from None


def paths_in(folder: SandboxPath, names: EntryNames) -> list[str]:
    """The paths of these names in a directory, sorted, in a form that every method takes.

    Leaves out names that are not valid UTF-8, because no path can name them.
    """
    return [join_names(folder, name) for name in sorted(name for group in names for name in group) if is_nameable(name)]


def join_names(folder: SandboxPath, name: str) -> str:
    """The path of a raw name: relative to the workspace, or absolute below an extra root."""
    top = () if not folder.root else (folder.root.rstrip("/"),)
    return "/".join((*top, *folder.parts, name))


def is_nameable(name: str) -> bool:
    """Whether a path can contain this raw name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
