"""``todowrite``: replaces the session's todo list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Annotated

from toolkit.builtin.session.todo_list import count_todos, fields_of, format_list
from toolkit.errors import InvalidArguments, ToolFailed
from toolkit.generated import TodowriteInput, TodowriteOutput
from toolkit.generated.models.todowrite import TodowriteOutputCounts, TodowriteOutputTodo
from toolkit.inject.key import Depends
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.stores.keys import TODO_STORE
from toolkit.runtime.stores.todos import Todo, TodoStore


def run(args: TodowriteInput, ctx: ToolContext, store: Annotated[TodoStore, Depends(TODO_STORE)]) -> TodowriteOutput:
    before = _read_previous(store, ctx.session_id)
    todos = list(_assign_ids(args, before))
    active = [todo.id for todo in todos if todo.status == "in_progress"]
    if len(active) > 1:
        raise InvalidArguments(f"at most one todo may be in_progress, but these are: {', '.join(active)}")
    if todos != before:
        store.write(ctx.session_id, todos)
    rows = [TodowriteOutputTodo(**fields_of(todo)) for todo in todos]
    return TodowriteOutput(todos=rows, counts=TodowriteOutputCounts(**count_todos(todos)), changed=todos != before)


def _read_previous(store: TodoStore, session_id: str) -> list[Todo]:
    try:
        return store.read(session_id)
    except ToolFailed:  # damaged; writing a new list repairs it
        return []


def _assign_ids(args: TodowriteInput, before: list[Todo]) -> Iterator[Todo]:
    """The new todos, each with an id: the given one, that of an earlier todo with the same content, or a free number."""
    given = Counter(todo.id for todo in args.todos if todo.id)
    duplicated = [id for id, times in given.items() if times > 1]
    if duplicated:
        raise InvalidArguments(f"the id {duplicated[0]!r} is duplicated; omit the id of the new todo")
    known = {todo.content: todo.id for todo in before if todo.id not in given}
    taken = {*given, *(todo.id for todo in before)}
    numbers = (str(number) for number in count(1) if str(number) not in taken)
    for todo in args.todos:
        id = todo.id or known.pop(todo.content, None) or next(numbers)
        yield Todo(id, todo.content, todo.status, todo.active_form, todo.priority)


def text(output: TodowriteOutput) -> str:
    if not output.todos:
        return "The todo list is empty."
    return format_list(output.todos, completed=output.counts.completed, total=output.counts.total)
