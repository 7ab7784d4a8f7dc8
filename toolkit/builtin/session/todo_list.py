"""What todowrite and todoread share: output fields, counts and the text form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol, TypedDict

from toolkit.runtime.stores.todos import Todo, TodoStatus

_MARKS: Final[dict[TodoStatus, str]] = {"pending": " ", "in_progress": ">", "completed": "x", "cancelled": "-"}
_DEFAULT_PRIORITY: Final = 3


class TodoCounts(TypedDict):
    """Number of todos, by status."""

    pending: int
    in_progress: int
    completed: int
    cancelled: int
    total: int


class TodoFields(TypedDict):
    """The fields of a todo in the output of either tool."""

    id: str
    content: str
    status: TodoStatus
    active_form: str | None
    priority: int


class OutputTodo(Protocol):
    """A todo in the output of either tool."""

    @property
    def id(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def status(self) -> TodoStatus: ...
    @property
    def priority(self) -> int: ...


def fields_of(todo: Todo) -> TodoFields:
    return {
        "id": todo.id,
        "content": todo.content,
        "status": todo.status,
        "active_form": todo.active_form,
        "priority": todo.priority,
    }


def count_todos(todos: Iterable[Todo]) -> TodoCounts:
    found = Counter(todo.status for todo in todos)
    return {
        "pending": found["pending"],
        "in_progress": found["in_progress"],
        "completed": found["completed"],
        "cancelled": found["cancelled"],
        "total": found.total(),
    }


def format_list(todos: Iterable[OutputTodo], *, completed: int, total: int) -> str:
    """One line per todo, then how many of the whole list are completed."""
    return "\n".join([*map(_format_todo, todos), f"{completed} of {total} completed"])


def _format_todo(todo: OutputTodo) -> str:
    """``[>] 2: Fix the bug (priority 1)``; the default priority is not shown."""
    mark = _MARKS[todo.status]
    priority = "" if todo.priority == _DEFAULT_PRIORITY else f" (priority {todo.priority})"
    return f"[{mark}] {todo.id}: {' '.join(todo.content.split())}{priority}"
