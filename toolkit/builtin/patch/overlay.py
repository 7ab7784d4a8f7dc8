"""The files a patch names: as they are on the disk, and as the patch will leave them. Nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.builtin.files.open_with_hint import open_file
from toolkit.builtin.files.whole_file import MAX_BYTES, WholeFile, bytes_of, read_whole, text_of
from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.fs.sandbox_fs import SandboxFS
    from toolkit.guard.fs.write import Fingerprint

MAX_WORK_BYTES: Final = 256 * 1024 * 1024
"""How much work with files a patch may cause, counting a file as often as the patch names it."""

Key: TypeAlias = tuple[str, tuple[str, ...]]
"""What two spellings of a path have in common."""


class Content:
    """What is in a file: as it was read, or a text that was made. ``mode`` is None for what umask decides."""

    def __init__(self, made: WholeFile | str, mode: int | None = None, *, executable: bool = False) -> None:
        self._made = made
        self.mode: Final = mode
        self.executable: Final = executable

    def text(self) -> str:
        """Refuses what is no text."""
        return self._made if isinstance(self._made, str) else text_of(self._made)

    def data(self) -> bytes:
        return bytes_of(self._made) if isinstance(self._made, str) else self._made.data

    def with_mode(self, mode: int) -> Content:
        """The same with other permissions."""
        return Content(self._made, mode)


class Unread(Content):
    """What is in a file that is too large to be read; it can still be deleted."""

    def __init__(self, path: str, size: int, mode: int) -> None:
        super().__init__("", mode)
        self._path = path
        self._size = size

    def text(self) -> str:
        words = f"'{self._path}' has {self._size} bytes; only files of up to {MAX_BYTES} can be changed"
        raise ToolFailed("TOO_LARGE", f"{words}. Nothing was changed", path=self._path, size=self._size)

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
    """Files by any spelling of their paths. What was changed here is what later parts of the patch find."""

    def __init__(self, fs: SandboxFS) -> None:
        self._fs = fs
        self._left = MAX_WORK_BYTES
        self._paths: dict[Key, str] = {}
        self._shown: dict[Key, str] = {}
        self._originals: dict[Key, Original | None] = {}
        self._changed: dict[Key, Content | None] = {}

    def key(self, path: str) -> Key:
        """By which the file is known."""
        parsed = self._fs.path(path)
        if parsed.wants_directory:
            raise ToolFailed("NOT_FILE", f"'{parsed.shown}/' names a directory, not a file", path=parsed.shown)
        key = (parsed.root, parsed.parts)
        if key not in self._paths:
            self._paths[key], self._shown[key] = path, parsed.shown
        return key

    def shown(self, path: str) -> str:
        """How results and messages name it."""
        return self._shown[self.key(path)]

    def original(self, path: str) -> Original | None:
        """The file on the disk, None if there is nothing; refuses what is no file."""
        key = self.key(path)
        if key not in self._originals:
            self._originals[key] = self._read(path)
        return self._originals[key]

    def current(self, path: str) -> Content | None:
        """What is in the file by now, None if it is not there."""
        key = self.key(path)
        if key in self._changed:
            return self._changed[key]
        original = self.original(path)
        return None if original is None else original.content

    def put(self, path: str, content: Content) -> None:
        self.original(path)  # to know what is replaced
        self._changed[self.key(path)] = content

    def drop(self, path: str) -> None:
        self.original(path)
        self._changed[self.key(path)] = None

    def changes(self) -> list[tuple[str, Original | None, Content | None]]:
        """Every file that will not be as it was: its path, what was there, what will be."""
        found = []
        for key, content in self._changed.items():
            original = self._originals[key]
            if not _is_same(original, content):
                found.append((self._paths[key], original, content))
        return found

    def missing(self, path: str) -> ToolFailed:
        """The failure for a file that is not there, with names like it; a part of the patch may have taken it away."""
        shown = self.shown(path)
        if self._originals.get(self.key(path)) is not None:
            words = (
                f"'{shown}' is no longer there when this part of the patch comes: an earlier one deletes or moves it"
            )
            return ToolFailed("NOT_FOUND", words, path=shown)
        try:
            open_file(self._fs, path).close()
        except ToolFailed as failure:
            return failure
        return ToolFailed("CONFLICT", f"'{shown}' came into being meanwhile; try again", path=shown)

    def spend(self, size: int) -> None:
        """Count work; refuses a patch that takes too much."""
        self._left -= size
        if self._left < 0:
            words = "the files it names are too large, or named too often, for one patch; split it"
            raise ToolFailed("TOO_LARGE", f"{words}. Nothing was changed")

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
