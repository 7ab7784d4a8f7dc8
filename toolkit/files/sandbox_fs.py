"""``SandboxFS``, the files that handlers get: ``FileGuard`` with locks, transactions and the names of ``pathlib``.

Nothing here decides what may be touched, and nothing here touches it: everything is done by the methods of ``FileGuard``
and by the handles that it opens.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.files.guard import FileGuard, RootPaths
from toolkit.guard.files.handles import CHUNK, Check, OpenFile, SandboxDir
from toolkit.guard.files.path import AcceptChanges, FileErrors, SandboxPath, ignore_changes, outside_error
from toolkit.guard.files.place import Names, real_names
from toolkit.guard.files.protect import Root, journal_outside
from toolkit.guard.files.resolve import ResolverName

if TYPE_CHECKING:
    import os

    from toolkit.files.transaction import FileChange, Recovery
    from toolkit.guard.files.handles import EntryNames
    from toolkit.guard.files.write import Fingerprint, WrittenFile
    from toolkit.guard.permission import GitMode, Mode

MAX_WHOLE_FILE: Final = 10 * 1024 * 1024
"""How many bytes are read or written at once, unless the caller sets another limit."""
MAX_GLOB_DEPTH: Final = 200
"""How many directories below each other are walked: each of them is open meanwhile."""

HoldLock: TypeAlias = Callable[[str, Check], AbstractContextManager[None]]


class SandboxFS(FileGuard):
    """The files below the workspace and the extra roots, for tools and their authors.

    Handlers get it as ``ctx.fs``. Its methods have the names of ``pathlib`` where they do the same:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SandboxFS(folder) as fs:
    ...     written = fs.write_text("notes/today.md", "- call Ada\\n")
    ...     fs.read_text("notes/today.md"), list(fs.iterdir("notes")), fs.is_dir("notes"), fs.exists("x")
    ('- call Ada\\n', ['notes/today.md'], True, False)

    - whole files: ``read_text``, ``read_bytes``, ``write_text``, ``write_bytes``
    - what is there: ``exists``, ``is_file``, ``is_dir``, ``stat``, ``iterdir``, ``glob``
    - changes: ``write_file``, ``make_dir``, ``remove_file``, ``remove_dir``, ``rename``
    - large files in parts, and walks: ``open_file``, ``open_dir``
    - to read a file and write it again: ``lock``, ``fingerprint``; several changes or none: ``transaction``

    Every method takes a path relative to the workspace (or absolute and below the name of a root), follows relative
    links that stay inside, refuses all others with ``SandboxViolation`` and fails with ``ToolFailed``.
    ``mode="read-only"`` applies to all roots, and ``read_roots`` are never written; where roots are nested, the deepest
    decides. ``.git`` and what ``protected`` (patterns, as in ``Globs``) covers are read, but never changed; nor is anything
    at or below the absolute paths in ``read_only``, from which trusted code is loaded. Other repositories are not made or
    changed unless ``git`` is ``"write"``. ``accept_changes`` is entered around every change of files; what it yields is
    called with the real path and the new content of each file.
    ``hold_elsewhere`` is entered around every change of a file, with its path below the workspace (or absolute) and a
    function that ends a wait by raising: it keeps out others who see these files, on other machines for example.
    ``journal`` is a private directory outside every root for the data ``recover`` needs; it is made on first use.
    Thread-safe. Limit: an absolute path must begin with a root as it was given here.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Root,
        *,
        resolver: ResolverName = "auto",
        mode: Mode = "workspace-write",
        read_roots: RootPaths = (),
        write_roots: RootPaths = (),
        protected: Sequence[str] = (),
        read_only: Sequence[str] = (),
        git: GitMode = "commit",
        journal: str | None = None,
        accept_changes: AcceptChanges = ignore_changes,
        hold_elsewhere: HoldLock | None = None,
    ) -> None:
        workspace = Root.open(root, "workspace", writable=mode == "workspace-write")
        super().__init__(
            workspace,
            resolver=resolver,
            mode=mode,
            read_roots=read_roots,
            write_roots=write_roots,
            protected=protected,
            read_only=read_only,
            git=git,
            accept_changes=accept_changes,
            hold=partial(_hold, workspace, hold_elsewhere),
        )
        self._journal = None if journal is None else journal_outside(journal, self._begin().roots)

    def read_text(self, path: str, encoding: str = "utf-8", *, max_bytes: int = MAX_WHOLE_FILE) -> str:
        """The text of a file. Line ends stay as they are, so that a text which is written again changes nothing else.

        Fails with ``NOT_FOUND``, ``NOT_FILE``, ``TOO_LARGE`` (more than ``max_bytes``), or ``BINARY_NOT_SUPPORTED`` if the
        file is not in this encoding.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SandboxFS(folder) as fs:
        ...     written = fs.write_bytes("a.txt", b"caf\\xe9\\r\\n")
        ...     fs.read_text("a.txt", encoding="latin-1")
        'café\\r\\n'
        >>> with tempfile.TemporaryDirectory() as folder, SandboxFS(folder) as fs:
        ...     written = fs.write_bytes("a.txt", b"caf\\xe9")
        ...     fs.read_text("a.txt")
        Traceback (most recent call last):
        toolkit.errors.ToolFailed: TOOL_FAILED: BINARY_NOT_SUPPORTED: 'a.txt' is not utf-8 text: ...
        """
        return decode(self.read_bytes(path, max_bytes=max_bytes), encoding, self.path(path).shown)

    def read_bytes(self, path: str, *, max_bytes: int = MAX_WHOLE_FILE) -> bytes:
        """The content of a file; ``TOO_LARGE`` for more than ``max_bytes``, which ``open_file`` reads in parts."""
        with self.open_file(path) as file:
            return read_whole(file, max_bytes)

    def write_text(
        self, path: str, text: str, encoding: str = "utf-8", *, max_bytes: int = MAX_WHOLE_FILE
    ) -> WrittenFile:
        """Write a text file: all of it, or after any failure nothing. Makes missing directories, as ``write_file`` does.

        Line ends are written as they are in ``text``.
        """
        return self.write_bytes(path, encode(text, encoding, self.path(path).shown), max_bytes=max_bytes)

    def write_bytes(self, path: str, data: bytes, *, max_bytes: int = MAX_WHOLE_FILE) -> WrittenFile:
        """Write a file of at most ``max_bytes``. See ``write_file``, which has no limit and can refuse a changed file.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SandboxFS(folder) as fs:
        ...     fs.write_bytes("new/a.bin", b"abc").created, fs.write_bytes("new/a.bin", b"abcd").size
        (True, 4)
        """
        check_size(data, self.path(path).shown, max_bytes)
        return self.write_file(path, data)

    def iterdir(self, path: str = ".") -> Iterator[str]:
        """The paths in a directory, sorted, to be used with the other methods.

        Leaves out what the policy hides from this tool, and names that are not valid UTF-8. ``open_dir`` also has kinds
        and sizes, and the number of hidden names.
        """
        where = self.path(path)
        with self._open_dir(where) as folder:
            return iter(paths_in(where, folder.names()))

    def glob(self, pattern: str) -> Iterator[str]:
        """The paths that match a pattern, to be used with the other methods. ``**`` stands for any number of directories.

        Links are found, but not followed. Directories that cannot be read are left out, as is what the policy hides.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SandboxFS(folder) as fs:
        ...     made = [fs.write_text(name, "") for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt")]
        ...     list(fs.glob("**/*.py")), list(fs.glob("src/*.txt"))
        (['a.py', 'src/b.py', 'src/deep/c.py'], ['src/d.txt'])
        """

        return glob(self.path(pattern), self._open_dir)

    def exists(self, path: str) -> bool:
        """Whether the path leads to anything, following links. What may not be used is still an error, not ``False``."""
        return self._kind(path) is not None

    def is_file(self, path: str) -> bool:
        """Whether the path leads to a regular file, following links."""
        return self._kind(path) == "file"

    def is_dir(self, path: str) -> bool:
        """Whether the path leads to a directory, following links."""
        return self._kind(path) == "directory"

    def _kind(self, path: str) -> str | None:
        try:
            return self.stat(path).kind
        except ToolFailed as error:
            if error.reason in ("NOT_FOUND", "NOT_DIRECTORY"):
                return None
            raise

    def fingerprint(self, text: str) -> Fingerprint:
        """What ``write_file`` compares with the file it replaces. Reads the whole file for its digest."""
        with self.open_file(text) as file:
            digest = hashlib.sha256()
            while piece := file.read(CHUNK):
                digest.update(piece)
            return dataclasses.replace(file.fingerprint(), sha256=digest.hexdigest())

    @contextmanager
    def lock(self, *texts: str) -> Iterator[None]:
        """Keep other threads and processes of this user from writing these files, for a caller that reads a file in order
        to write it again.

        ``write_file``, ``rename`` and the removals take the same lock; its owner may take it again. Refuses what may not be
        written. Limits: only this toolkit takes these locks; a second ``lock`` inside the first may deadlock, so name all
        files at once.
        """
        rules, places = self._begin(), list[Names]()
        for text in texts:
            with (
                self._changes.find_place(text, follow=True) as place,
                FileErrors(place.shown),
                rules.protect_repositories([place]),
            ):
                places.append(place.real)
        with rules.hold(places, self._check):
            yield

    def write_file(
        self, text: str, data: bytes, *, create_only: bool = False, expected: Fingerprint | None = None
    ) -> WrittenFile:
        """Write this content to the file. Makes the file and the directories above it where they are missing.

        A replaced file keeps its permissions; a new one gets the default by umask. A link that stays inside is followed to
        its file. ``create_only`` refuses a file that exists (``ALREADY_EXISTS``), ``expected`` refuses one that has changed
        (``CONFLICT``). After any failure the old file is intact; directories that were made for it stay.
        Limit: a change made between the last comparison and the replacement is lost.
        """
        return self._changes.write_file(text, data, create_only=create_only, expected=expected)

    def make_dir(self, text: str, *, parents: bool = True, exist_ok: bool = True) -> bool:
        """Make a directory, and those above it unless ``parents`` is false. Returns whether it is new."""
        return self._changes.make_dir(text, parents=parents, exist_ok=exist_ok)

    def remove_file(self, text: str) -> None:
        """Remove one name that is not a directory; of a link, the link itself."""
        self._changes.remove_file(text)

    def remove_dir(self, text: str) -> None:
        """Remove an empty directory that is not a root."""
        self._changes.remove_dir(text)

    def rename(self, old: str, new: str, *, replace: bool = False) -> None:
        """Move a name; of a link, the link itself. ``replace`` allows it to replace a file or an empty directory.

        Refuses a directory that contains something protected, denied or not approved, under its old or its new path;
        everything below it is checked. Limit: what another process puts into it after that check is moved with it.
        """
        self._changes.rename(old, new, replace=replace)

    def transaction(self, changes: Sequence[FileChange]) -> None:
        """Make all of these changes or, after any failure, none. A file that is not as expected is a ``CONFLICT``.

        Paths are checked and followed as by ``write_file`` and ``remove_file``, but no link is removed, and directories that
        were made for a failed transaction are removed. With a journal directory this also holds for a process that is
        killed, once the next one calls ``recover``; without one, only for errors. Limit: until it ends, others may
        see a part of the changes.
        """
        from toolkit.files.transaction import transact

        transact(changes, self._changes.find_place, self._begin(), self._journal, self._check, self._accept_changes)

    def recover(self) -> tuple[Recovery, ...]:
        """Finish or undo what killed processes left below these roots. Call it before any tool works there.

        Does not touch transactions of running processes or files that were changed since; reports the latter.
        """
        from toolkit.files.transaction import recover

        return () if self._journal is None else tuple(recover(self._journal, self._begin()))


def _hold(
    workspace: Root, elsewhere: HoldLock | None, places: Iterable[Names], check: Check
) -> AbstractContextManager[None]:
    """Hold the locks of these real paths: among threads and processes, and elsewhere."""
    from toolkit.files.locks import hold_locks

    return hold_locks(places, check, None if elsewhere is None else partial(_hold_by_name, elsewhere, workspace))


@contextmanager
def _hold_by_name(hold: HoldLock, workspace: Root, place: Names, check: Check) -> Iterator[None]:
    top = real_names(workspace.number)
    is_below = place[: len(top)] == top
    with hold("/".join(place[len(top) :] if is_below else ("", *place)), check):
        yield


# -- whole files -------------------------------------------------------------------------------------------------------


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


# -- patterns ----------------------------------------------------------------------------------------------------------

_ANY_DEPTH: Final = "**"
_MAGIC: Final = frozenset("*?[")

Part: TypeAlias = "Callable[[str], object] | None"
"""Matches one name; None stands for ``**``, any number of directories."""
States: TypeAlias = frozenset[int]
"""Which parts of the pattern may match the next name."""
OpenDir: TypeAlias = "Callable[[SandboxPath], SandboxDir]"


def glob(path: SandboxPath, open_dir: OpenDir) -> Iterator[str]:
    """The paths that match the pattern ``path``, sorted within each directory.

    Links are found, but never followed; the time is linear in what is walked.
    """
    if ".." in path.parts:
        raise outside_error(path.text)
    plain = next((at for at, part in enumerate(path.parts) if _MAGIC & set(part)), len(path.parts))
    depth = min(plain, len(path.parts) - 1)
    if depth < 0:
        return
    top = SandboxPath(path.parts[:depth], root=path.root)
    parts = [_compile(part) for part in path.parts[depth:]]
    try:
        folder = open_dir(top)
    except ToolFailed as error:
        if error.reason in ("NOT_FOUND", "NOT_DIRECTORY"):
            return
        raise
    yield from _walk(folder, top, parts, _with_skipped(parts, 0), only_directories=path.wants_directory)


def _compile(part: str) -> Part:
    return None if part == _ANY_DEPTH else re.compile(fnmatch.translate(part)).match


def _walk(
    folder: SandboxDir, path: SandboxPath, parts: list[Part], states: States, *, only_directories: bool, depth: int = 0
) -> Iterator[str]:
    with folder:
        if depth > MAX_GLOB_DEPTH:
            raise ToolFailed("TOO_LARGE", f"'{folder.path}' has more than {MAX_GLOB_DEPTH} directories above it")
        names = folder.names()
        directories = set(names.directories)
        others = () if only_directories else (*names.files, *names.symlinks, *names.others)
        for name in sorted((*directories, *others)):
            after = _step(parts, states, name)
            if not after or not is_nameable(name):
                continue
            if len(parts) in after:
                yield join_names(path, name)
            if name in directories and after - {len(parts)}:
                below = _open_below(folder, name)
                if below is not None:
                    inner = SandboxPath((*path.parts, name), root=path.root)
                    yield from _walk(
                        below, inner, parts, after, only_directories=only_directories, depth=depth + 1
                    )  # fmt: skip


def _open_below(folder: SandboxDir, name: str) -> SandboxDir | None:
    """The directory with this name; None if it vanished, may not be read, or is hidden from this call."""
    try:
        return folder.child(name)
    except (ToolFailed, SandboxViolation):
        return None


def _step(parts: list[Part], states: States, name: str) -> States:
    """The states after one more name."""
    after: set[int] = set()
    for state in states:
        if state == len(parts):
            continue
        matches = parts[state]
        if matches is None:
            after |= _with_skipped(parts, state)
        elif matches(name):
            after |= _with_skipped(parts, state + 1)
    return frozenset(after)


def _with_skipped(parts: list[Part], state: int) -> States:
    """The state, and those after it that are reached because ``**`` may also stand for nothing."""
    found = {state}
    while state < len(parts) and parts[state] is None:
        state += 1
        found.add(state)
    return frozenset(found)
