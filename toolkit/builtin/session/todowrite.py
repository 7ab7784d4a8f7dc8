"""``todowrite``: replaces the session's todo list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Final

from toolkit.builtin.session.todo_list import count_todos, fields_of, format_list
from toolkit.errors import InvalidArguments, ToolFailed
from toolkit.generated import TodowriteInput, TodowriteOutput
from toolkit.generated.models.todowrite import TodowriteOutputCounts, TodowriteOutputTodo
from toolkit.inject import Depends
from toolkit.runtime.stores.keys import TODO_STORE
from toolkit.runtime.stores.todos import Todo, TodoStore
from toolkit.runtime.tool_context import ToolContext

_ATTEMPTS: Final = 20


def run(args: TodowriteInput, ctx: ToolContext, store: Annotated[TodoStore, Depends(TODO_STORE)]) -> TodowriteOutput:
    before, todos = _replace_list(args, store, ctx)
    rows = [TodowriteOutputTodo(**fields_of(todo)) for todo in todos]
    return TodowriteOutput(todos=rows, counts=TodowriteOutputCounts(**count_todos(todos)), changed=todos != before)


def _replace_list(args: TodowriteInput, store: TodoStore, ctx: ToolContext) -> tuple[list[Todo], list[Todo]]:
    """The lists before and after. The ids of the new one depend on the old one, so they are assigned again if somebody else
    has replaced it meanwhile."""
    for _ in range(_ATTEMPTS):
        ctx.signal.check()
        try:
            before = store.read(ctx.session_id)
        except ToolFailed:  # damaged; writing a new list repairs it
            todos = _new_list(args, [])
            store.write(ctx.session_id, todos)
            return [], todos
        todos = _new_list(args, before)
        if todos == before or store.swap(ctx.session_id, before, todos):
            return before, todos
    raise ToolFailed("CONFLICT", "the todo list of this session is being changed by somebody else; try again")


def _new_list(args: TodowriteInput, before: list[Todo]) -> list[Todo]:
    todos = list(_assign_ids(args, before))
    active = [todo.id for todo in todos if todo.status == "in_progress"]
    if len(active) > 1:
        raise InvalidArguments(f"at most one todo may be in_progress, but these are: {', '.join(active)}")
    return todos


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
