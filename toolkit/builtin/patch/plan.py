"""Computes in memory what the parts of a patch do, in order.

Order means different things in the two formats. In an envelope, each part sees the files as the parts before it left them. A
git diff describes two trees: files are moved and copied as they were before the whole patch, and a name that one part
frees can be used by any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolkit.builtin.files.whole_file import (
    MAX_BYTES,
    WholeFile,
    decode_text,
    encode_text,
    open_file,
    read_whole,
    refuse_mixed_encodings,
)
from toolkit.builtin.patch.hunks import Budget, apply_envelope, apply_numbered
from toolkit.builtin.patch.parse import Patch, PatchOperation, Verb
from toolkit.builtin.text.diff import DIFF_LIMIT, binary_diff, unified_diff
from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.write import Fingerprint


# ----------------------------------------------------------------------------------------------------------------------
# The files a patch names, as they are on disk and as the patch changes them. Nothing is written here.

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


Action: TypeAlias = Literal["add", "update", "delete", "move"]

# The cost of one more line, in bytes.
_LINE_COST: Final = 50
_READABLE: Final = 0o444
_EXECUTABLE: Final = 0o111


@dataclass(frozen=True, slots=True)
class PatchPart:
    """What one part of the patch does to one file."""

    path: str
    action: Action
    moved_to: str | None
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """What the whole patch does: per part, as a diff, and per file with old and new content."""

    parts: list[PatchPart]
    diff: str
    changes: list[tuple[str, Original | None, Content | None]]


def plan_patch(patch: Patch, fs: SandboxFS, check: Callable[[], None]) -> PatchPlan:
    """Everything up to the write; ``check`` may raise to cancel it."""
    overlay = Overlay(fs)
    planner = _EnvelopePlanner(overlay) if patch.format == "envelope" else _GitDiffPlanner(overlay, patch)
    for operation in patch.operations:
        check()
        planner.apply(operation)
    planner.finish()
    return PatchPlan(planner.parts, planner.diff(), overlay.changes())


class _PartPlanner:
    """What both formats share."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.parts: list[PatchPart] = []
        self._budget = Budget()
        self._diffs: list[str] = []
        self._room = DIFF_LIMIT
        self._left_out = 0

    def apply(self, operation: PatchOperation) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Called after the last part."""

    def diff(self) -> str:
        """The changes of all parts; if too long, the first ones and how many files are left out."""
        rest = f"[diffs of {self._left_out} more files left out]\n" if self._left_out else ""
        return "".join(self._diffs) + rest

    def existing(self, path: str) -> Content:
        """The file as this part sees it."""
        content = self.overlay.current(path)
        if content is None:
            raise self.overlay.missing(path)
        return content

    def apply_hunks(self, operation: PatchOperation, content: Content) -> Content:
        """The content after the hunks of a part."""
        text = content.text()
        shown = self.overlay.display_path(operation.path)
        self.overlay.spend(len(text) + _LINE_COST * text.count("\n"))
        apply_hunks = apply_numbered if operation.hunks[0].old_start is not None else apply_envelope
        after = apply_hunks(text, operation.hunks, shown, self._budget)
        refuse_mixed_encodings(shown, text, after)
        if len(after) > MAX_BYTES or len(encode_text(after)) > MAX_BYTES:
            message = f"'{shown}' would have more than {MAX_BYTES} bytes, which is too large; nothing was changed"
            raise ToolFailed("TOO_LARGE", message, path=shown)
        return Content(after, content.mode, executable=content.executable)

    def record(self, operation: PatchOperation, action: Action, old: Content | None, new: Content | None) -> None:
        """Record what a part does."""
        path = self.overlay.display_path(operation.path)
        target = self.overlay.display_path(operation.target)
        if operation.hunks and action != "delete":
            added = sum(hunk.added for hunk in operation.hunks)
            removed = sum(hunk.removed for hunk in operation.hunks)
        else:
            is_kept = old is not None and new is not None and operation.content is None
            added, removed = (0, 0) if is_kept else (_count_lines(new), _count_lines(old))
        moved_to = target if action == "move" else None
        self.parts.append(PatchPart(target if operation.verb == "copy" else path, action, moved_to, added, removed))
        if self._room <= 0:
            self._left_out += 1
            return
        diff = "".join(_git_header(operation.verb, path, target, old, new)) + _diff(old, new, path, target, self._room)
        self._room -= len(diff)
        self._diffs.append(diff)


class _EnvelopePlanner(_PartPlanner):
    """Each part sees the files as the parts before it left them."""

    def apply(self, operation: PatchOperation) -> None:
        overlay, path = self.overlay, operation.path
        old = overlay.current(path)
        if operation.content is not None:
            added = Content("".join(f"{line}\n" for line in operation.content), None if old is None else old.mode)
            overlay.put(path, added)
            self.record(operation, "add", old, added)
            return
        if old is None:
            raise overlay.missing(path)
        if operation.verb == "delete":
            overlay.drop(path)
            self.record(operation, "delete", old, None)
            return
        new = self.apply_hunks(operation, old)
        is_moved = overlay.key(operation.target) != overlay.key(path)
        overlay.put(operation.target, new)
        if is_moved:
            overlay.drop(path)
        self.record(operation, "move" if is_moved else "update", old, new)


class _GitDiffPlanner(_PartPlanner):
    """All parts see the tree before the patch."""

    def __init__(self, overlay: Overlay, patch: Patch) -> None:
        super().__init__(overlay)
        gone = [one.path for one in patch.operations if one.verb in ("delete", "move")]
        self._leaving: set[Key] = {overlay.key(path) for path in gone}
        self._written: set[Key] = set()
        self._dropped: dict[Key, str] = {}

    def apply(self, operation: PatchOperation) -> None:
        path = operation.path
        if operation.content is not None:
            text = "".join(f"{line}\n" for line in operation.content)
            text = text.removesuffix("\n") if operation.content_is_open else text
            added = Content(text, executable=bool(operation.executable))
            self._put_new(path, added)
            self.record(operation, "add", None, added)
        elif operation.verb in ("move", "copy"):
            old = self._before(path)
            new = _with_executable(self.apply_hunks(operation, old) if operation.hunks else old, operation.executable)
            self._put_new(operation.target, new)
            if operation.verb == "move":
                self._dropped[self.overlay.key(path)] = path
            self.record(operation, "move" if operation.verb == "move" else "add", old, new)
        elif operation.verb == "delete":
            old = self.existing(path)
            rest = self.apply_hunks(operation, old).text() if operation.hunks else old.text()
            if rest:
                raise self._not_all_deleted(path, rest)
            self._drop(path)
            self.record(operation, "delete", old, None)
        else:
            old = self.existing(path)
            new = _with_executable(self.apply_hunks(operation, old) if operation.hunks else old, operation.executable)
            self.overlay.put(path, new)
            self.record(operation, "update", old, new)

    def existing(self, path: str) -> Content:
        key = self.overlay.key(path)
        if key in self._dropped and key not in self._written:
            raise self.overlay.missing(path)
        return super().existing(path)

    def _drop(self, path: str) -> None:
        """Drop a file: at the end, because it may still be moved or copied; at once if the patch created it."""
        key = self.overlay.key(path)
        if key in self._written:
            self._written.remove(key)
            self.overlay.drop(path)
        self._dropped[key] = path

    def finish(self) -> None:
        """Drop the names that were removed and not reused."""
        for key, path in self._dropped.items():
            if key not in self._written:
                self.overlay.drop(path)

    def _before(self, path: str) -> Content:
        """The file before the whole patch."""
        original = self.overlay.original(path)
        if original is None:
            raise self.overlay.missing(path)
        return original.content

    def _put_new(self, path: str, content: Content) -> None:
        key = self.overlay.key(path)
        exists = self.overlay.original(path) is not None and key not in self._leaving
        if exists or key in self._written:
            shown = self.overlay.display_path(path)
            message = f"'{shown}' already exists, but the patch creates it; nothing was changed"
            raise ToolFailed("ALREADY_EXISTS", message, path=shown)
        self.overlay.spend(len(content.data()))
        self._written.add(key)
        self.overlay.put(path, content)

    def _not_all_deleted(self, path: str, rest: str) -> ToolFailed:
        shown = self.overlay.display_path(path)
        lines = rest.count("\n") + 1
        message = f"'{shown}' has {lines} more lines than the patch deletes; it is not the file the patch was made for"
        return ToolFailed("NO_MATCH", f"{message}. Nothing was changed", path=shown)


def _git_header(verb: Verb, path: str, target: str, old: Content | None, new: Content | None) -> Iterator[str]:
    """The git header for what a plain diff cannot express: changes of names and permissions."""
    modes = [None if one is None or one.mode is None else one.mode for one in (old, new)]
    has_other_mode = None not in modes and modes[0] != modes[1]
    is_executable = old is None and new is not None and new.executable
    if path == target and not has_other_mode and not is_executable:
        return
    yield f"diff --git a/{path} b/{target}\n"
    if has_other_mode:
        yield f"old mode 100{modes[0]:03o}\nnew mode 100{modes[1]:03o}\n"
    if is_executable:
        yield "new file mode 100755\n"
    if path != target:
        word = "copy" if verb == "copy" else "rename"
        yield f"{word} from {path}\n{word} to {target}\n"


def _with_executable(content: Content, executable: bool | None) -> Content:
    """The content with the executable bit that git records: everyone who may read the file may run it, or no one."""
    if executable is None or content.mode is None:
        return content
    mode = content.mode | (content.mode & _READABLE) >> 2 if executable else content.mode & ~_EXECUTABLE
    return content.with_mode(mode)


def _count_lines(content: Content | None) -> int:
    """Number of lines in a file; 0 if it is not text."""
    if content is None or isinstance(content, Unread):
        return 0
    data = content.data()
    return 0 if b"\0" in data else data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _diff(old: Content | None, new: Content | None, path: str, target: str, room: int) -> str:
    try:
        before, after = (None if one is None else one.text() for one in (old, new))
    except ToolFailed:
        return binary_diff(target)
    diff = unified_diff(before, after, target, limit=room)
    return diff.replace(f"--- a/{target}\n", f"--- a/{path}\n", 1) if path != target else diff
