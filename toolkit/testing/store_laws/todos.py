"""What every store of todo lists must do."""

from __future__ import annotations

from typing import Final

import pytest

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.waiting import as_blocking
from toolkit.stores import AsyncTodoStore, Todo, TodoStore
from toolkit.testing.store_laws.many_callers import ODD_NAMES, call_at_once

FULL: Final = Todo("7", "Grüße\n\x00\udc80 \U0001f600", "in_progress", "Grüßend", 1)
_THREADS: Final = 4
_ROUNDS: Final = 10


class TodoStoreLaws:
    """Tests that every ``TodoStore`` must pass. Subclass it in a test module, and override the fixture ``store``.

    The fixture ``other_store`` is a second object over the same lists, as another process has it; by default, the same one.
    Both may be async.

    >>> import pytest
    >>> from toolkit.stores import MemoryTodoStore
    >>> class TestMyStore(TodoStoreLaws):
    ...     @pytest.fixture
    ...     def store(self) -> MemoryTodoStore:
    ...         return MemoryTodoStore()
    """

    too_long: int = 1024 * 1024
    """So many characters are more than one session may keep."""

    @pytest.fixture
    def store(self) -> TodoStore | AsyncTodoStore:
        raise NotImplementedError(f"override the fixture `store` in {type(self).__name__}")

    @pytest.fixture
    def other_store(self, store: TodoStore | AsyncTodoStore) -> TodoStore | AsyncTodoStore:
        return store

    @pytest.fixture
    def todos(self, store: TodoStore | AsyncTodoStore) -> TodoStore:
        """The store, whose methods wait."""
        waiting: TodoStore = as_blocking(store)
        return waiting

    @pytest.fixture
    def other_todos(self, other_store: TodoStore | AsyncTodoStore) -> TodoStore:
        waiting: TodoStore = as_blocking(other_store)
        return waiting

    def test_a_session_begins_with_an_empty_list(self, todos: TodoStore) -> None:
        assert todos.read("nobody") == []

    def test_what_is_written_is_read(self, todos: TodoStore, other_todos: TodoStore) -> None:
        """With every field, any text, in its order; also by another process."""
        lists: tuple[list[Todo], ...] = ([FULL, Todo("1", "b"), Todo("2", "a", "cancelled")], [Todo("1", "b")], [])
        for written in lists:
            todos.write("s", written)
            assert todos.read("s") == written == other_todos.read("s")

    def test_a_list_that_was_read_can_be_changed(self, todos: TodoStore) -> None:
        """It is the caller's own."""
        todos.write("s", [FULL])
        todos.read("s").clear()
        assert todos.read("s") == [FULL]

    def test_sessions_do_not_see_each_other(self, todos: TodoStore) -> None:
        """Whatever their names are."""
        for name in ODD_NAMES:
            todos.write(name, [Todo("1", repr(name))])
        assert [todos.read(name)[0].content for name in ODD_NAMES] == [repr(name) for name in ODD_NAMES]

    def test_a_list_is_swapped_only_for_the_expected_one(self, todos: TodoStore, other_todos: TodoStore) -> None:
        one, two, three = [Todo("1", "one")], [Todo("1", "two")], [Todo("1", "three")]
        assert not todos.swap("s", one, two)
        assert todos.swap("s", [], one)
        assert other_todos.swap("s", one, two)
        assert not todos.swap("s", one, three)
        assert not todos.swap("s", [], three)
        assert todos.read("s") == two

    def test_of_several_who_swap_the_same_list_one_succeeds(self, todos: TodoStore, other_todos: TodoStore) -> None:
        def swap(index: int) -> bool:
            return (todos, other_todos)[index % 2].swap("s", [], [Todo("1", str(index))])

        assert sorted(call_at_once(8, swap)) == [False] * 7 + [True]

    def test_no_update_is_lost(self, todos: TodoStore, other_todos: TodoStore) -> None:
        """Several threads add to one list; who finds another list than he read tries again."""

        def add(index: int) -> None:
            store = (todos, other_todos)[index % 2]
            for number in range(_ROUNDS):
                done = False
                while not done:
                    before = store.read("s")
                    done = store.swap("s", before, [*before, Todo(f"{index}.{number}", "x")])

        call_at_once(_THREADS, add)
        wanted = {f"{index}.{number}" for index in range(_THREADS) for number in range(_ROUNDS)}
        found = [todo.id for todo in todos.read("s")]
        assert (set(found), len(found)) == (wanted, len(wanted))

    def test_a_session_cannot_fill_the_store(self, todos: TodoStore) -> None:
        """A list that is too long is refused, and the earlier one stays."""
        todos.write("s", [FULL])
        for act in (
            lambda: todos.write("s", [Todo("1", "x" * self.too_long)]),
            lambda: todos.swap("s", [FULL], [Todo("1", "x" * self.too_long)]),
        ):
            with pytest.raises(ToolFailed) as caught:
                act()
            assert caught.value.reason == "TOO_LARGE", caught.value
        assert todos.read("s") == [FULL]
