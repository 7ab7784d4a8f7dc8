from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.snapshots import Snapshots
from tests.projects import run
from toolkit import TODO_STORE, FileTodoStore, InvalidArguments, JsonObject, MemoryTodoStore, Todo, ToolFailed
from toolkit.generated import SecurityPolicy, TodowriteInput, Toolkit, ToolkitContext, create_agent_toolkit

WORK: JsonObject = JsonObject(
    {
        "todos": [
            {"content": "Find the bug", "status": "completed", "active_form": "Looking"},
            {"content": "Fix it\nproperly", "status": "in_progress", "priority": 1},
            {"content": "Run the tests", "status": "pending"},
            {"content": "Tell everybody", "status": "cancelled"},
        ]
    }
)


def session(root: Path, name: str, state: Path, **context: Any) -> Toolkit:
    made = ToolkitContext(
        root,
        SecurityPolicy(default="allow"),
        session_id=name,
        state_dir=state,
        **context,
    )
    return create_agent_toolkit(made)


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("todos")


def test_keeps_the_list_and_gives_ids(toolkit: Toolkit) -> None:
    written = toolkit.invoke("todowrite", WORK).content
    read = toolkit.tools.todoread()

    assert [(todo.id, todo.content, todo.status, todo.priority) for todo in read.todos] == [
        ("1", "Find the bug", "completed", 3),
        ("2", "Fix it\nproperly", "in_progress", 1),
        ("3", "Run the tests", "pending", 3),
        ("4", "Tell everybody", "cancelled", 3),
    ]
    assert written.model_dump()["todos"] == read.model_dump()["todos"]
    assert read.counts.model_dump() == {"pending": 1, "in_progress": 1, "completed": 1, "cancelled": 1, "total": 4}
    assert [todo.active_form for todo in read.todos] == ["Looking", None, None, None]


def test_shows_one_status(toolkit: Toolkit) -> None:
    toolkit.invoke("todowrite", WORK)

    assert [todo.id for todo in toolkit.tools.todoread(status="pending").todos] == ["3"]


@pytest.mark.parametrize(
    ("second", "ids", "changed"),
    [
        pytest.param([{"content": "a", "status": "pending"}, {"content": "b", "status": "pending"}], ["1", "2"], False, id="the same again"),
        pytest.param([{"content": "b", "status": "completed"}], ["2"], True, id="same words keep their id"),
        pytest.param([{"content": "new", "status": "pending"}], ["3"], True, id="an id is not given twice"),
        pytest.param([{"content": "new", "status": "pending", "id": "1"}, {"content": "a", "status": "pending"}], ["1", "3"], True, id="a given id wins"),
        pytest.param([{"content": "b", "status": "pending"}, {"content": "a", "status": "pending"}], ["2", "1"], True, id="another order"),
        pytest.param([], [], True, id="nothing"),
    ],
)  # fmt: skip
def test_a_todo_keeps_its_id(toolkit: Toolkit, second: list[dict[str, str]], ids: list[str], changed: bool) -> None:
    first = [{"content": "a", "status": "pending"}, {"content": "b", "status": "pending"}]
    toolkit.invoke("todowrite", JsonObject({"todos": first}))

    output = toolkit.invoke("todowrite", TodowriteInput.model_validate({"todos": second})).content

    assert [todo.id for todo in output.todos] == ids
    assert output.changed == changed


@pytest.mark.parametrize(
    ("todos", "words"),
    [
        ([{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}], "at most one .*: 5, 6"),
        ([{"content": "a", "status": "pending", "id": "x"}, {"content": "b", "status": "pending", "id": "x"}], "the id 'x' is duplicated"),
        ([{"content": "", "status": "pending"}], r"todos\.0\.content"),
        ([{"content": "a", "status": "started"}], r"todos\.0\.status"),
        ([{"content": "a", "status": "pending", "priority": 6}], r"todos\.0\.priority"),
        ([{"content": "a"}], r"todos\.0\.status"),
        ([{"content": "a", "status": "pending"}] * 501, "todos"),
    ],
)  # fmt: skip
def test_refuses_and_keeps_the_earlier_list(toolkit: Toolkit, todos: list[dict[str, object]], words: str) -> None:
    toolkit.invoke("todowrite", WORK)
    with pytest.raises(InvalidArguments, match=words):
        toolkit.invoke("todowrite", JsonObject({"todos": todos}))
    assert toolkit.tools.todoread().counts.total == 4


def test_survives_a_restart_and_keeps_sessions_apart(tmp_path: Path, state: Path) -> None:
    with session(tmp_path, "one/../two", state) as toolkit:
        toolkit.tools.todowrite(todos=[{"content": "a", "status": "pending"}])

    with session(tmp_path, "one/../two", state) as again, session(tmp_path, "two", state) as other:
        assert [todo.content for todo in again.tools.todoread().todos] == ["a"]
        assert other.tools.todoread().todos == []
    assert {path.parent for path in state.rglob("*.json")} == {state / "todos"}


def test_the_store_can_be_another(tmp_path: Path, state: Path) -> None:
    store = MemoryTodoStore()
    with session(tmp_path, "s", state, overrides={TODO_STORE.id: lambda: store}) as toolkit:
        toolkit.tools.todowrite(todos=[{"content": "a", "status": "pending"}])

    assert store.read("s") == [Todo("1", "a")]
    assert list(state.iterdir()) == []


def test_says_so_when_the_file_is_damaged_and_todowrite_is_the_way_out(tmp_path: Path, state: Path) -> None:
    with session(tmp_path, "s", state) as toolkit:
        toolkit.tools.todowrite(todos=[{"content": "a", "status": "pending"}])
        [file] = (state / "todos").glob("*.json")
        for damage in ("{", "[1]", '[{"id": "1"}]', ""):
            file.write_text(damage)
            with pytest.raises(ToolFailed, match="write a new one with todowrite"):
                toolkit.tools.todoread()
        toolkit.tools.todowrite(todos=[{"content": "b", "status": "pending"}])
        assert [todo.content for todo in toolkit.tools.todoread().todos] == ["b"]


def test_a_full_disk_leaves_the_earlier_list(state: Path) -> None:
    store = FileTodoStore(str(state))
    store.write("s", [Todo("1", "a")])
    code = f"""
import resource, signal
from toolkit import FileTodoStore, Todo, ToolFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    FileTodoStore({str(state)!r}).write("s", [Todo("1", "b" * 1000)])
except ToolFailed as error:
    print(error)
"""
    done = run([sys.executable, "-c", code], state)
    assert (
        "TOOL_FAILED: IO: the todo list could not be saved: file too large; the earlier list is unchanged"
        in done.stdout
    )
    assert store.read("s") == [Todo("1", "a")]
    assert len(list(state.glob("*.json*"))) == 1


def test_the_file_is_private(tmp_path: Path, state: Path) -> None:
    with session(tmp_path, "s", state) as toolkit:
        toolkit.tools.todowrite(todos=[{"content": "a", "status": "pending"}])
    [file] = (state / "todos").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())[0]["content"] == "a"


def test_what_a_model_reads(toolkit: Toolkit, snapshots: Snapshots) -> None:
    snapshots.check("todoread/empty", toolkit.invoke("todoread", {}).text(), budget=40)
    snapshots.check("todowrite/list", toolkit.invoke("todowrite", WORK).text(), budget=150)
    snapshots.check("todoread/one_status", toolkit.invoke("todoread", {"status": "pending"}).text(), budget=60)
    toolkit.tools.todowrite(todos=[{"content": "a", "status": "pending"}])
    snapshots.check("todoread/no_such_status", toolkit.invoke("todoread", {"status": "completed"}).text(), budget=60)
