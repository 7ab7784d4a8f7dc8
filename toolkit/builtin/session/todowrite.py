"""``todowrite``: the session's todo list, replaced as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Annotated

from toolkit.builtin.session.todo_list import counts_of, line
from toolkit.errors import InvalidArguments, ToolFailed
from toolkit.generated import TodowriteInput, TodowriteOutput
from toolkit.generated.models.todowrite import TodowriteOutputCounts, TodowriteOutputTodo
from toolkit.inject.key import Depends
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.stores.keys import TODO_STORE
from toolkit.runtime.stores.todos import Todo, TodoStore


def run(args: TodowriteInput, ctx: ToolContext, store: Annotated[TodoStore, Depends(TODO_STORE)]) -> TodowriteOutput:
    before = _before(store, ctx.session_id)
    todos = list(_todos(args, before))
    active = [todo.id for todo in todos if todo.status == "in_progress"]
    if len(active) > 1:
        raise InvalidArguments(f"at most one todo may be in_progress, but these are: {', '.join(active)}")
    if todos != before:
        store.write(ctx.session_id, todos)
    rows = [
        TodowriteOutputTodo(
            id=todo.id,
            content=todo.content,
            status=todo.status,
            active_form=todo.active_form,
            priority=todo.priority,
        )
        for todo in todos
    ]
    return TodowriteOutput(todos=rows, counts=TodowriteOutputCounts(**counts_of(todos)), changed=todos != before)


def _before(store: TodoStore, session_id: str) -> list[Todo]:
    try:
        return store.read(session_id)
    except ToolFailed:  # damaged: to write a new list is the way out
        return []


def _todos(args: TodowriteInput, before: list[Todo]) -> Iterator[Todo]:
    """The list, with an id for every todo: its own, that of the same words before, or a number that is free."""
    given = Counter(todo.id for todo in args.todos if todo.id)
    twice = [id for id, times in given.items() if times > 1]
    if twice:
        raise InvalidArguments(f"two todos have the id {twice[0]!r}; leave the id of the new one out")
    known = {todo.content: todo.id for todo in before if todo.id not in given}
    taken = {*given, *(todo.id for todo in before)}
    numbers = (str(number) for number in count(1) if str(number) not in taken)
    for todo in args.todos:
        id = todo.id or known.pop(todo.content, None) or next(numbers)
        yield Todo(id, todo.content, todo.status, todo.active_form, todo.priority)


def text(output: TodowriteOutput) -> str:
    if not output.todos:
        return "The todo list is empty."
    done = f"{output.counts.completed} of {output.counts.total} completed"
    return "\n".join([*map(line, output.todos), done])
