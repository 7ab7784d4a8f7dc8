"""Todo lists in files of the state directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.output_files import DAY
from toolkit.runtime.stores.private_files import PrivateFiles, digest_of, reason_of
from toolkit.runtime.stores.todos import MAX_TODO_BYTES, Todo, decode_todos, encode_todos


class FileTodoStore:
    """One file per session in a private directory, which any number of processes may share.

    :param max_age_seconds: how long a list is kept after it was last written: seven days, as long as outputs.
    :param max_bytes: how long the list of one session may be, as JSON.
    """

    def __init__(self, directory: str, *, max_age_seconds: float = 7 * DAY, max_bytes: int = MAX_TODO_BYTES) -> None:
        self._files: Final = PrivateFiles(directory, max_age_seconds)
        self._max_bytes: Final = max_bytes

    def read(self, session_id: str) -> list[Todo]:
        try:
            return decode_todos(self._files.read(digest_of(session_id)))
        except OSError as error:
            raise ToolFailed("IO", f"the todo list of this session cannot be read: {reason_of(error)}") from error

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        data = encode_todos(todos, self._max_bytes)
        with self._saving(session_id):
            self._files.write(digest_of(session_id), data)

    def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        data, name = encode_todos(todos, self._max_bytes), digest_of(session_id)
        with self._saving(session_id):
            if decode_todos(self._files.read(name)) != list(expected):
                return False
            self._files.write(name, data)
            return True

    @contextmanager
    def _saving(self, session_id: str) -> Iterator[None]:
        try:
            with self._files.locked():
                yield
        except OSError as error:
            rest = "; the earlier list is unchanged" if self._has_list(session_id) else ""
            raise ToolFailed("IO", f"the todo list could not be saved: {reason_of(error)}{rest}") from error

    def _has_list(self, session_id: str) -> bool:
        try:
            return self._files.read(digest_of(session_id)) is not None
        except OSError:
            return False
