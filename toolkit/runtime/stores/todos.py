"""The todo list of a session, and the interface of the stores that keep it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.output_files import DAY
from toolkit.runtime.stores.private_files import PrivateFiles, digest_of, reason_of

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]

MAX_TODO_BYTES: Final = 256 * 1024
"""How long the list of one session may be, written as JSON, unless a store says otherwise."""


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to do. ``active_form`` is its present-continuous form ("Running the tests"); priority 1 comes first."""

    id: str
    content: str
    status: TodoStatus = "pending"
    active_form: str | None = None
    priority: int = 3


@runtime_checkable
class TodoStore(Protocol):
    """Keeps the todo list of each session. A list is always replaced as a whole.

    Failures are raised as ``ToolFailed``. ``toolkit.testing.TodoStoreLaws`` tests a store of your own.
    """

    def read(self, session_id: str) -> list[Todo]:
        """The list of the session; empty if there is none."""

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        """Replaces the list of the session, whatever it is."""

    def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        """Replaces the list if it still is the expected one; returns whether it was. The comparison and the write are atomic.

        Lists are compared by content, so a store needs no revision: they are short, and equal lists are the same state.
        """


class AsyncTodoStore(Protocol):
    """A ``TodoStore`` whose methods are awaited."""

    async def read(self, session_id: str) -> list[Todo]: ...

    async def write(self, session_id: str, todos: Sequence[Todo]) -> None: ...

    async def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool: ...


class MemoryTodoStore:
    """Keeps lists in memory, until the process ends.

    >>> store = MemoryTodoStore()
    >>> store.write("session", [Todo("1", "write tests")])
    >>> [todo.content for todo in store.read("session")]
    ['write tests']
    """

    def __init__(self, *, max_bytes: int = MAX_TODO_BYTES) -> None:
        self._max_bytes: Final = max_bytes
        self._lists: dict[str, list[Todo]] = {}
        self._lock = threading.Lock()

    def read(self, session_id: str) -> list[Todo]:
        with self._lock:
            return list(self._lists.get(session_id, ()))

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        encode_todos(todos, self._max_bytes)
        with self._lock:
            self._lists[session_id] = list(todos)

    def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        encode_todos(todos, self._max_bytes)
        with self._lock:
            if self._lists.get(session_id, []) != list(expected):
                return False
            self._lists[session_id] = list(todos)
            return True


def encode_todos(todos: Sequence[Todo], max_bytes: int) -> bytes:
    """A list as JSON; raises ``ToolFailed`` if it is too long to be kept."""
    data = json.dumps([asdict(todo) for todo in todos]).encode()
    if len(data) > max_bytes:
        words = f"the todo list takes {len(data)} bytes, but at most {max_bytes} are kept for a session; shorten it"
        raise ToolFailed("TOO_LARGE", words)
    return data


def decode_todos(data: bytes | str | None) -> list[Todo]:
    """A list from JSON; raises ``ToolFailed`` if it is damaged."""
    if data is None:
        return []
    try:
        return [Todo(**row) for row in json.loads(data)]
    except (ValueError, TypeError, RecursionError) as error:
        words = "the todo list of this session cannot be read; write a new one with todowrite"
        raise ToolFailed("IO", words) from error


# ----------------------------------------------------------------------------------------------------------------------
# Todo lists in files of the state directory.


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
