"""Todo lists in files: a removed directory, expiry, what one session may keep, and several writers."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.projects import run
from tests.runtime.conftest import MakeDoor
from toolkit import FileTodoStore, Todo, ToolFailed
from toolkit.builtin import BUILTIN

TODOS = {"todos": [{"content": "write tests", "status": "pending"}]}
DAY = 24 * 60 * 60


def test_a_state_directory_that_was_removed_is_made_again(make_door: MakeDoor, tmp_path: Path) -> None:
    state = tmp_path / "state"
    door = make_door(packs=[BUILTIN], state_dir=state, session_id="s")
    door.invoke("todowrite", TODOS)
    shutil.rmtree(state)

    assert door.tool("todoread").todos == []
    door.invoke("todowrite", TODOS)
    assert [todo.content for todo in door.tool("todoread").todos] == ["write tests"]
    assert [oct(folder.stat().st_mode & 0o777) for folder in (state, state / "todos")] == ["0o700", "0o700"]


def test_a_directory_that_cannot_be_made_again_is_said_as_it_is(make_door: MakeDoor, tmp_path: Path) -> None:
    state = tmp_path / "state"
    door = make_door(packs=[BUILTIN], state_dir=state, session_id="s")
    door.invoke("todowrite", TODOS)
    shutil.rmtree(state)
    state.touch()
    with pytest.raises(ToolFailed) as caught:
        door.invoke("todowrite", TODOS)
    assert caught.value.message == "the todo list could not be saved: not a directory"


def test_lists_expire_as_kept_outputs_do(tmp_path: Path) -> None:
    store = FileTodoStore(str(tmp_path))
    store.write("old", [Todo("1", "old")])
    store.write("young", [Todo("1", "young")])
    [old] = [file for file in tmp_path.glob("*.json") if "old" in file.read_text()]
    os.utime(old, times=(time.time() - 8 * DAY,) * 2)
    assert (store.read("old"), len(store.read("young"))) == ([], 1)

    FileTodoStore(str(tmp_path)).write("another", [Todo("1", "another")])
    assert not old.exists()
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_how_long_lists_are_kept_can_be_set(tmp_path: Path) -> None:
    store = FileTodoStore(str(tmp_path), max_age_seconds=30 * DAY)
    store.write("s", [Todo("1", "still here")])
    [file] = tmp_path.glob("*.json")
    os.utime(file, times=(time.time() - 20 * DAY,) * 2)
    assert [todo.content for todo in store.read("s")] == ["still here"]


def test_lists_of_the_release_before_are_read(tmp_path: Path) -> None:
    store = FileTodoStore(str(tmp_path))
    store.write("s", [])
    [file] = tmp_path.glob("*.json")
    row = {"id": "1", "content": "grüßen", "status": "pending", "active_form": None, "priority": 3}
    file.write_text(json.dumps([row], ensure_ascii=False), encoding="utf-8")
    assert store.read("s") == [Todo("1", "grüßen")]


ADD = """
import sys
from toolkit import FileTodoStore, Todo
store, me = FileTodoStore(sys.argv[1]), sys.argv[2]
for number in range(25):
    while True:
        before = store.read("s")
        if store.swap("s", before, [*before, Todo(f"{me}-{number}", "x")]):
            break
"""


def test_no_update_is_lost_between_processes(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda me: run([sys.executable, "-c", ADD, str(tmp_path), me], tmp_path.parent), "abc"))
    found = {todo.id for todo in FileTodoStore(str(tmp_path)).read("s")}
    assert found == {f"{me}-{number}" for me in "abc" for number in range(25)}
