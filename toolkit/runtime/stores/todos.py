"""The todo list of a session, and the interface of the stores that keep it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from toolkit.errors import ToolFailed

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
        """Replaces the list if it still is the expected one; returns whether it was. Between the two nobody else writes."""


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
