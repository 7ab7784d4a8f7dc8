"""SandboxFS against a plain file system in memory: every result and the tree agree, and nothing outside changes.

The model knows nothing of descriptors, links that race or locks: it is a dictionary, and says what a reader would expect.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.fuzz.plain_files import DIRECTORY, Link, PlainFiles, Refusal
from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError
from toolkit.guard import Drop, FileChange, Put, SandboxFS

NAMES: Final = ("a", "b", "sub", "out", "in", ".", "..", "é")
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
contents = st.sampled_from([b"", b"one\n", b"two\n"])


class FilesAgree(RuleBasedStateMachine):
    """Each rule does the same to both, and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.base = Path(tempfile.mkdtemp(dir=memory))
        self.top = self.base / "ws"
        (self.top / "sub").mkdir(parents=True)
        (self.base / "outside").mkdir()
        (self.base / "outside/a").write_bytes(b"SECRET")
        (self.top / "a").write_bytes(b"one\n")
        (self.top / "out").symlink_to("../outside")
        (self.top / "in").symlink_to("sub")
        self.fs = SandboxFS(self.top, journal=str(self.base / "state"))
        self.model = PlainFiles(
            {("sub",): DIRECTORY, ("a",): b"one\n", ("out",): Link("../outside"), ("in",): Link("sub")}
        )

    def teardown(self) -> None:
        self.fs.close()
        shutil.rmtree(self.base)

    def both(self, act: str, *arguments: Any) -> None:
        assert self._outcome(self.fs, act, arguments) == self._outcome(self.model, act, arguments), (act, arguments)

    def _outcome(self, side: Any, act: str, arguments: tuple[Any, ...]) -> object:
        """What it returns where that can be compared; else that it was refused, and of what is read also how."""
        is_read = act in ("read_bytes", "exists", "is_dir", "is_file")
        try:
            result = getattr(side, act)(*arguments)
        except (SandboxViolation, InvalidArguments):
            return "outside" if is_read else "refused"
        except ToolFailed:
            return "failed" if is_read else "refused"
        except Refusal as refusal:
            return "refused" if not is_read else "outside" if refusal.kind == "outside" else "failed"
        return result if isinstance(result, bytes | bool) else "done"

    @rule(path=paths, data=contents)
    def write(self, path: str, data: bytes) -> None:
        self.both("write_bytes", path, data)

    @rule(path=paths)
    def read(self, path: str) -> None:
        self.both("read_bytes", path)

    @rule(path=paths)
    def look(self, path: str) -> None:
        self.both("exists", path)
        self.both("is_dir", path)
        self.both("is_file", path)

    @rule(path=paths)
    def make(self, path: str) -> None:
        self.both("make_dir", path)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        self.both("remove_file", path)

    @rule(path=paths)
    def remove_directory(self, path: str) -> None:
        self.both("remove_dir", path)

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        self.both("rename", old, new)

    @rule(path=st.lists(st.sampled_from(["a", "b", "sub"]), min_size=1, max_size=2).map("/".join), points_to=paths)
    def link(self, path: str, points_to: str) -> None:
        """Somebody else makes a link; tools cannot."""
        if self.model.make_link(path, points_to):
            (self.top / path).symlink_to(points_to)

    @rule(changes=st.lists(st.tuples(st.sampled_from(["a", "b", "sub/a", "sub/b", "c/d"]), st.none() | contents), min_size=1, max_size=3, unique_by=lambda change: change[0]))  # fmt: skip
    def transact(self, changes: list[tuple[str, bytes | None]]) -> None:
        """All of them or none: a change of what is no plain file ends the whole transaction."""
        wanted: list[FileChange] = []
        for path, data in changes:
            try:
                seen = self.fs.fingerprint(path)
            except ToolkitError:
                seen = None
            if data is not None:
                wanted.append(Put(path, data, seen))
            elif seen is not None:
                wanted.append(Drop(path, seen))
        before = self.model.copy()
        try:
            self.fs.transaction(wanted)
        except ToolkitError:
            self.model = before
            return
        for change in wanted:
            if isinstance(change, Put):
                self.model.write_bytes(change.path, change.data)
            else:
                self.model.remove_file(change.path)

    @invariant()
    def trees_are_the_same(self) -> None:
        assert self._tree() == self.model.tree()

    @invariant()
    def nothing_outside_changes(self) -> None:
        assert [path.name for path in self.base.iterdir() if path.name not in ("ws", "state")] == ["outside"]
        assert {path.name: path.read_bytes() for path in (self.base / "outside").iterdir()} == {"a": b"SECRET"}

    def _tree(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for path in self.top.rglob("*"):
            name = path.relative_to(self.top).as_posix()
            if path.is_symlink():
                found[name] = Link(os.readlink(path))
            else:
                found[name] = DIRECTORY if path.is_dir() else path.read_bytes()
        return found


BOUNDED: Final = settings(
    max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
WHOLE: Final = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
def test_every_result_and_the_tree_agree(everything: bool) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(FilesAgree, settings=WHOLE if everything else BOUNDED)
