"""The todo list of a session, and the stores that keep it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from toolkit.errors import ToolFailed

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to do. ``active_form`` is its present-continuous form ("Running the tests"); priority 1 comes first."""

    id: str
    content: str
    status: TodoStatus = "pending"
    active_form: str | None = None
    priority: int = 3


class TodoStore(Protocol):
    """Keeps the todo list of each session. A list is always replaced as a whole."""

    def read(self, session_id: str) -> list[Todo]:
        """The list of the session; empty if there is none."""

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        """Replaces the list of the session."""


class MemoryTodoStore:
    """Keeps lists in memory, until the process ends.

    >>> store = MemoryTodoStore()
    >>> store.write("session", [Todo("1", "write tests")])
    >>> [todo.content for todo in store.read("session")]
    ['write tests']
    """

    def __init__(self) -> None:
        self._lists: dict[str, list[Todo]] = {}
        self._lock = threading.Lock()

    def read(self, session_id: str) -> list[Todo]:
        with self._lock:
            return list(self._lists.get(session_id, ()))

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        with self._lock:
            self._lists[session_id] = list(todos)


class FileTodoStore:
    """One file per session in a private directory. Writes are atomic, also when the process crashes."""

    def __init__(self, directory: str) -> None:
        self._directory: Final = directory

    def read(self, session_id: str) -> list[Todo]:
        try:
            with open(self._file(session_id), encoding="utf-8") as file:
                rows: list[dict[str, Any]] = json.load(file)
            return [Todo(**row) for row in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            words = "the todo list of this session cannot be read; write a new one with todowrite"
            raise ToolFailed("IO", words) from error

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        target = self._file(session_id)
        draft = f"{target}.{secrets.token_hex(8)}"
        try:
            with open(draft, "x", encoding="utf-8", opener=_open_private) as file:
                json.dump([asdict(todo) for todo in todos], file, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except OSError as error:
            if os.path.exists(draft):
                os.unlink(draft)
            words = f"the todo list could not be saved ({error.strerror}); the earlier list is unchanged"
            raise ToolFailed("IO", words) from error

    def _file(self, session_id: str) -> str:
        # A session id may be any text; it must not become a path.
        name = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        return os.path.join(self._directory, f"{name}.json")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
