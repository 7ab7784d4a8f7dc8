"""The files a patch names, as they are on disk and as the patch changes them. Nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.builtin.files.open_with_hint import open_file
from toolkit.builtin.files.whole_file import MAX_BYTES, WholeFile, decode_text, encode_text, read_whole
from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.write import Fingerprint

MAX_WORK_BYTES: Final = 256 * 1024 * 1024
"""Maximum total size of the files in a patch, counting a file each time it is named."""

Key: TypeAlias = tuple[str, tuple[str, ...]]
"""Equal for all spellings of a path."""


class Content:
    """The content of a file, as it was read or as new text. With ``mode`` None, umask decides."""

    def __init__(self, source: WholeFile | str, mode: int | None = None, *, executable: bool = False) -> None:
        self._source = source
        self.mode: Final = mode
        self.executable: Final = executable

    def text(self) -> str:
        """The text; raises ``BINARY_NOT_SUPPORTED`` if it is not text."""
        return self._source if isinstance(self._source, str) else decode_text(self._source)

    def data(self) -> bytes:
        return encode_text(self._source) if isinstance(self._source, str) else self._source.data

    def with_mode(self, mode: int) -> Content:
        """The same content with other permissions."""
        return Content(self._source, mode)


class Unread(Content):
    """The content of a file that is too large to read; the file can still be deleted."""

    def __init__(self, path: str, size: int, mode: int) -> None:
        super().__init__("", mode)
        self._path = path
        self._size = size

    def text(self) -> str:
        problem = f"'{self._path}' has {self._size} bytes; only files of at most {MAX_BYTES} bytes can be changed"
        raise ToolFailed("TOO_LARGE", f"{problem}. Nothing was changed", path=self._path, size=self._size)

    def data(self) -> bytes:
        return self.text().encode()

    def with_mode(self, mode: int) -> Content:
        return Unread(self._path, self._size, mode)


@dataclass(frozen=True, slots=True)
class Original:
    """A file before the patch."""

    fingerprint: Fingerprint
    mode: int
    content: Content


class Overlay:
    """Files by any spelling of their paths. Later parts of the patch see the changes made by earlier ones."""

    def __init__(self, fs: SandboxFS) -> None:
        self._fs = fs
        self._left = MAX_WORK_BYTES
        self._paths: dict[Key, str] = {}
        self._shown: dict[Key, str] = {}
        self._originals: dict[Key, Original | None] = {}
        self._changed: dict[Key, Content | None] = {}

    def key(self, path: str) -> Key:
        """The key of the file at this path."""
        parsed = self._fs.path(path)
        if parsed.wants_directory:
            raise ToolFailed("NOT_FILE", f"'{parsed.shown}/' names a directory, not a file", path=parsed.shown)
        key = (parsed.root, parsed.parts)
        if key not in self._paths:
            self._paths[key], self._shown[key] = path, parsed.shown
        return key

    def display_path(self, path: str) -> str:
        """The path as shown in results and messages."""
        return self._shown[self.key(path)]

    def original(self, path: str) -> Original | None:
        """The file on disk, None if it does not exist; refuses anything but a file."""
        key = self.key(path)
        if key not in self._originals:
            self._originals[key] = self._read(path)
        return self._originals[key]

    def current(self, path: str) -> Content | None:
        """The content of the file at this point of the patch, None if it does not exist."""
        key = self.key(path)
        if key in self._changed:
            return self._changed[key]
        original = self.original(path)
        return None if original is None else original.content

    def put(self, path: str, content: Content) -> None:
        self.original(path)  # read what is replaced
        self._changed[self.key(path)] = content

    def drop(self, path: str) -> None:
        self.original(path)
        self._changed[self.key(path)] = None

    def changes(self) -> list[tuple[str, Original | None, Content | None]]:
        """Every file that changes: its path, the original, the new content."""
        found = []
        for key, content in self._changed.items():
            original = self._originals[key]
            if not _is_same(original, content):
                found.append((self._paths[key], original, content))
        return found

    def missing(self, path: str) -> ToolFailed:
        """The error for a file that does not exist, or that an earlier part of the patch removed."""
        shown = self.display_path(path)
        if self._originals.get(self.key(path)) is not None:
            message = f"'{shown}' does not exist at this point of the patch: an earlier part deletes or moves it"
            return ToolFailed("NOT_FOUND", message, path=shown)
        try:
            open_file(self._fs, path).close()
        except ToolFailed as failure:
            return failure
        return ToolFailed("CONFLICT", f"'{shown}' was created concurrently; try again", path=shown)

    def spend(self, size: int) -> None:
        """Charge ``size`` bytes of work; refuses a patch that takes too much."""
        self._left -= size
        if self._left < 0:
            problem = "the files in the patch are too large, or named too often; split the patch"
            raise ToolFailed("TOO_LARGE", f"{problem}. Nothing was changed")

    def _read(self, path: str) -> Original | None:
        try:
            file = self._fs.open_file(path)
        except ToolFailed as failure:
            if failure.reason == "NOT_FOUND":
                return None
            raise
        with file:
            if file.size > MAX_BYTES:
                return Original(file.fingerprint(), file.mode, Unread(file.path, file.size, file.mode))
            self.spend(file.size)
            whole = read_whole(file)
            return Original(whole.fingerprint, file.mode, Content(whole, file.mode))


def _is_same(original: Original | None, content: Content | None) -> bool:
    if original is None or content is None:
        return original is None and content is None
    if isinstance(original.content, Unread) or content.mode not in (None, original.mode):
        return False
    return original.content.data() == content.data()
