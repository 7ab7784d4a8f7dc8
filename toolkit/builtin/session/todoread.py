"""``todoread``: reads the session's todo list."""

from __future__ import annotations

from typing import Annotated

from toolkit.builtin.session.todo_list import count_todos, fields_of, format_list
from toolkit.generated import TodoreadInput, TodoreadOutput
from toolkit.generated.models.todoread import TodoreadOutputCounts, TodoreadOutputTodo
from toolkit.inject import Depends
from toolkit.runtime.stores.keys import TODO_STORE
from toolkit.runtime.stores.todos import TodoStore
from toolkit.runtime.tool_context import ToolContext


def run(args: TodoreadInput, ctx: ToolContext, store: Annotated[TodoStore, Depends(TODO_STORE)]) -> TodoreadOutput:
    todos = store.read(ctx.session_id)
    rows = [
        TodoreadOutputTodo(**fields_of(todo)) for todo in todos if args.status is None or todo.status == args.status
    ]
    return TodoreadOutput(todos=rows, counts=TodoreadOutputCounts(**count_todos(todos)))


def text(output: TodoreadOutput) -> str:
    total = output.counts.total
    if not total:
        return "The todo list is empty."
    if not output.todos:
        return f"No todo has this status; the list has {total}."
    return format_list(output.todos, completed=output.counts.completed, total=total)
