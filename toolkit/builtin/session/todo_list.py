"""What todowrite and todoread share: counting, and how a list is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol, TypedDict

from toolkit.runtime.stores.todos import Todo, TodoStatus

_MARKS: Final[dict[TodoStatus, str]] = {"pending": " ", "in_progress": ">", "completed": "x", "cancelled": "-"}
_USUAL_PRIORITY: Final = 3


class Counts(TypedDict):
    """How many todos there are, by status."""

    pending: int
    in_progress: int
    completed: int
    cancelled: int
    total: int


class ShownTodo(Protocol):
    """A todo of either tool's output."""

    @property
    def id(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def status(self) -> TodoStatus: ...
    @property
    def priority(self) -> int: ...


def counts_of(todos: Iterable[Todo]) -> Counts:
    found = Counter(todo.status for todo in todos)
    return {
        "pending": found["pending"],
        "in_progress": found["in_progress"],
        "completed": found["completed"],
        "cancelled": found["cancelled"],
        "total": found.total(),
    }


def line(todo: ShownTodo) -> str:
    """``[>] 2: Fix the bug (priority 1)``; what is usual is not said."""
    mark = _MARKS[todo.status]
    priority = "" if todo.priority == _USUAL_PRIORITY else f" (priority {todo.priority})"
    return f"[{mark}] {todo.id}: {' '.join(todo.content.split())}{priority}"
