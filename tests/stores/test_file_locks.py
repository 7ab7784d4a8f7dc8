"""A store of write locks around every change of a file, for workspaces that several machines share."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.examples import repeats
from tests.projects import REPOSITORY
from tests.stores.redis_server import OwnRedis
from toolkit import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolFailed, ToolTimeout
from toolkit.runtime.stores.locks import FileLocks
from toolkit.stores import FileWriteLocks

WATCHDOG = 60.0
MACHINES = 3
TURNS = repeats(40)
# As on a machine of its own: nothing in its state directory is seen by the others.
MACHINE = """
import sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.stores import FileWriteLocks, RedisStores
workspace, state, number, turns, store = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
if store.startswith("unix:"):
    overrides = RedisStores(store).overrides(files="shared")
else:
    overrides = {"write_locks": lambda: FileWriteLocks(store)}
context = ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=state, overrides=overrides)
with create_agent_toolkit(context) as toolkit:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(turns):
        toolkit.tools.edit(
            path="counts.txt", old_string=f"line {number}: {turn};", new_string=f"line {number}: {turn + 1};"
        )
"""


class NotedLocks:
    """Locks that one process holds; it notes what is done with them."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str]] = []
        self.held: dict[str, str] = {}
        self.extended = threading.Event()
        self.fails = False

    def acquire(self, key: str, *, seconds: float) -> str | None:
        if self.fails:
            raise ToolFailed("IO", "the write lock failed: the server is gone")
        if key in self.held:
            return None
        self.noted.append(("acquire", key))
        self.held[key] = f"token {len(self.noted)}"
        return self.held[key]

    def extend(self, key: str, token: str, *, seconds: float) -> bool:
        self.extended.set()
        return self.held.get(key) == token

    def release(self, key: str, token: str) -> bool:
        self.noted.append(("release", key))
        return self.held.pop(key, None) == token


def open_toolkit(folder: Path, locks: Any) -> Toolkit:
    (folder / "ws").mkdir(exist_ok=True)
    policy = SecurityPolicy(default="allow")
    return create_agent_toolkit(
        ToolkitContext(folder / "ws", policy, state_dir=folder / "state", overrides={"write_locks": lambda: locks})
    )


def edit_on_machines(tmp_path: Path, store: str) -> list[str]:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "counts.txt").write_text("".join(f"line {number}: 0;\n" for number in range(MACHINES)))
    workers = []
    for number in range(MACHINES):
        own = tmp_path / f"machine {number}"
        environment = {**os.environ, "XDG_STATE_HOME": str(own), "TMPDIR": str(own)}
        own.mkdir()
        command = [sys.executable, "-c", MACHINE, str(workspace), str(own / "state"), str(number), str(TURNS), store]
        workers.append(
            subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == b"ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    assert [worker.wait(WATCHDOG) for worker in workers] == [0] * MACHINES
    for worker in workers:
        worker.communicate()
    return (workspace / "counts.txt").read_text().splitlines()


DONE = [f"line {number}: {TURNS};" for number in range(MACHINES)]


@pytest.mark.slow
def test_machines_that_share_a_redis_server_lose_no_edit(tmp_path: Path, shared_redis: OwnRedis) -> None:
    assert edit_on_machines(tmp_path, shared_redis.url) == DONE


@pytest.mark.slow
def test_machines_that_share_a_directory_of_locks_lose_no_edit(tmp_path: Path) -> None:
    assert edit_on_machines(tmp_path, str(tmp_path / "locks")) == DONE


def do_write(toolkit: Toolkit) -> object:
    return toolkit.tools.write_file(path="sub/a.txt", content="new\n")


def do_edit(toolkit: Toolkit) -> object:
    return toolkit.tools.edit(path="b.txt", old_string="old", new_string="new")


def do_patch(toolkit: Toolkit) -> object:
    updates = "".join(f"*** Update File: {name}\n@@\n-old\n+new\n" for name in ("c.txt", "b.txt"))
    return toolkit.tools.apply_patch(patch=f"*** Begin Patch\n{updates}*** End Patch\n")


@pytest.mark.parametrize(
    ("change", "keys"),
    [(do_write, ["sub/a.txt"]), (do_edit, ["b.txt"]), (do_patch, ["b.txt", "c.txt"])],
    ids=["write", "edit", "patch"],
)
def test_every_change_holds_the_locks_of_its_paths(
    tmp_path: Path, change: Callable[[Toolkit], object], keys: list[str]
) -> None:
    """Below the workspace, so that it does not matter where a machine has it; each once, in order, and given back."""
    locks = NotedLocks()
    with open_toolkit(tmp_path, locks) as toolkit:
        for name in ("b.txt", "c.txt"):
            (tmp_path / "ws" / name).write_text("old\n")
        change(toolkit)
    assert [key for act, key in locks.noted if act == "acquire"] == keys
    assert sorted(key for act, key in locks.noted if act == "release") == keys
    assert locks.held == {}


def test_reading_needs_no_lock(tmp_path: Path) -> None:
    locks = NotedLocks()
    with open_toolkit(tmp_path, locks) as toolkit:
        (tmp_path / "ws" / "a.txt").write_text("text\n")
        toolkit.tools.read_file(path="a.txt")
        toolkit.tools.grep(pattern="text")
    assert locks.noted == []


def test_a_call_waits_for_a_lock_no_longer_than_it_may_last(tmp_path: Path) -> None:
    locks = FileWriteLocks(str(tmp_path / "locks"))
    with open_toolkit(tmp_path, locks) as toolkit:
        (tmp_path / "ws" / "a.txt").write_text("old\n")
        token = locks.acquire("a.txt", seconds=WATCHDOG)
        assert token is not None
        with pytest.raises(ToolTimeout):
            toolkit.with_options(deadline=0.1).tools.write_file(path="a.txt", content="new\n")
        assert (tmp_path / "ws" / "a.txt").read_text() == "old\n"
        locks.release("a.txt", token)
        toolkit.tools.write_file(path="a.txt", content="new\n")
    assert (tmp_path / "ws" / "a.txt").read_text() == "new\n"


def test_without_its_lock_nothing_is_changed(tmp_path: Path) -> None:
    locks = NotedLocks()
    locks.fails = True
    with open_toolkit(tmp_path, locks) as toolkit:
        (tmp_path / "ws" / "b.txt").write_text("old\n")
        for change in (do_write, do_edit):
            with pytest.raises(ToolFailed, match="the write lock failed: the server is gone"):
                change(toolkit)
    assert [path.name for path in (tmp_path / "ws").iterdir() if path.is_file()] == ["b.txt"]
    assert (tmp_path / "ws" / "b.txt").read_text() == "old\n"


def test_a_lock_that_is_held_long_is_extended(caplog: pytest.LogCaptureFixture) -> None:
    locks = NotedLocks()
    files = FileLocks(lambda: locks, lease=0.03)
    with files.hold("a.txt", lambda: None):
        assert locks.extended.wait(WATCHDOG)
        locks.extended.clear()
        with caplog.at_level(logging.ERROR, "toolkit"):
            locks.held["a.txt"] = "of somebody else"
            while not caplog.records:
                assert locks.extended.wait(WATCHDOG)
                locks.extended.clear()
    assert "the lock of 'a.txt' was lost" in caplog.text
