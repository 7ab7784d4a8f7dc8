"""Methods for walks over many files: all names of a directory at once, whole small files, times. They promise the
same as the methods for a single file or entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guard.fs.test_race import INSIDE, SECRET, swapping, until_met
from tests.guard.fs.test_sandbox_fs import open_descriptors
from tests.guard.world import bind_socket
from toolkit.builtin.search.ignored import IgnoreRules
from toolkit.builtin.search.walk import Walk
from toolkit.errors import SandboxViolation, ToolCancelled, ToolFailed
from toolkit.guard import ResolverName, SandboxDir, SandboxFS

PLENTY = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    (root / "file").write_bytes(b"0123456789")
    (root / "empty").touch()
    (root / "link").symlink_to("file")
    (root / "away").symlink_to("/etc/hostname")
    (root / "up").symlink_to("..")
    os.mkfifo(root / "fifo")
    bind_socket(root, "socket")
    (root / os.fsdecode(b"odd\xff\n")).write_bytes(b"odd")
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver) as fs:
        yield fs


@pytest.fixture
def folder(fs: SandboxFS) -> Iterator[SandboxDir]:
    with fs.open_dir(".") as folder:
        yield folder


def test_names_come_by_kind_and_no_link_is_followed(folder: SandboxDir) -> None:
    names = folder.names()

    assert names.directories == ["sub"]
    assert sorted(names.files) == ["empty", "file", "odd\udcff\n"]
    assert sorted(names.symlinks) == ["away", "link", "up"]
    assert sorted(names.others) == ["fifo", "socket"]
    assert folder.hidden == 0
    assert {entry.raw: entry.kind for entry in folder.entries()} == {
        **dict.fromkeys(names.directories, "directory"),
        **dict.fromkeys(names.files, "file"),
        **dict.fromkeys(names.symlinks, "symlink"),
        **dict.fromkeys(names.others, "other"),
    }


def test_a_path_is_shown_as_entries_show_it(folder: SandboxDir) -> None:
    assert folder.path_of("odd\udcff\n") == "odd\\xff\\x0a"
    with folder.child("sub") as sub:
        assert (sub.path, sub.path_of("x")) == ("sub", "sub/x")


@pytest.mark.parametrize(
    ("name", "most", "expected"),
    [
        ("file", PLENTY, b"0123456789"),
        ("file", 10, b"0123456789"),
        ("file", 9, None),
        ("empty", 0, b""),
        ("odd\udcff\n", PLENTY, b"odd"),
    ],
)
def test_a_small_file_is_read_as_a_whole_a_larger_one_not_at_all(
    folder: SandboxDir, name: str, most: int, expected: bytes | None
) -> None:
    assert folder.read_child_file(name, most) == expected


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("link", "NOT_FILE"),
        ("away", "NOT_FILE"),
        ("fifo", "NOT_FILE"),
        ("socket", "NOT_FILE"),
        ("sub", "NOT_FILE"),
        ("none", "NOT_FOUND"),
    ],
)
def test_only_a_regular_file_of_that_very_name_is_read(folder: SandboxDir, name: str, reason: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        folder.read_child_file(name, PLENTY)

    assert caught.value.reason == reason


def test_times_are_those_of_names_that_exist_and_of_links_themselves(folder: SandboxDir, root: Path) -> None:
    for number, name in enumerate(("file", "link", "sub", "fifo")):
        os.utime(root / name, ns=(number, number), follow_symlinks=False)

    assert folder.changed_ns(["file", "link", "none", "sub", "fifo"]) == {"file": 0, "link": 1, "sub": 2, "fifo": 3}


STEPS: list[Callable[[SandboxDir, str], object]] = [
    lambda folder, name: folder.read_child_file(name, PLENTY),
    lambda folder, name: folder.changed_ns([name]),
    lambda folder, name: folder.child(name),
    lambda folder, name: folder.open_child_file(name),
]


@pytest.mark.each("step", "name")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["..", ".", "", "../ws", "/etc", "sub/x", "file\0"])
def test_a_name_is_exactly_one(folder: SandboxDir, step: Callable[[SandboxDir, str], object], name: str) -> None:
    with pytest.raises(SandboxViolation):
        step(folder, name)


@pytest.mark.parametrize("step", STEPS)
def test_what_is_denied_is_neither_named_nor_touched(fs: SandboxFS, step: Callable[[SandboxDir, str], object]) -> None:
    with fs.with_deny(["file", "sub"]).open_dir(".") as folder:
        names = folder.names()

        assert (names.directories, sorted(names.files), folder.hidden) == ([], ["empty", "odd\udcff\n"], 2)
        for name in ("file", "FILE", "sub"):
            with pytest.raises(SandboxViolation, match="deny rule"):
                step(folder, name)


@pytest.mark.slow
def test_a_call_that_is_to_end_ends_before_each_step_and_within_a_large_directory(fs: SandboxFS, root: Path) -> None:
    for number in range(3000):
        (root / f"sub/{number}").touch()
    asked: list[int] = []
    limit = 3

    def check() -> None:
        asked.append(1)
        if len(asked) > limit:
            raise ToolCancelled("stop")

    with fs.with_check(check).open_dir("sub") as folder:
        asked.clear()
        with pytest.raises(ToolCancelled):
            folder.names()
        for step in STEPS:
            with pytest.raises(ToolCancelled):
                step(folder, "1")


def test_a_walk_that_is_to_end_ends_at_the_next_directory(fs: SandboxFS, root: Path) -> None:
    for number in range(100):
        (root / f"sub/{number:03}").mkdir()
    stop: list[ToolCancelled] = []

    def check() -> None:
        for error in stop:
            raise error

    view = fs.with_check(check)
    seen: list[str] = []

    def walk() -> None:
        with view.open_dir(".") as start:
            for visit in Walk(start, IgnoreRules.at(view, "."), include_hidden=False):
                seen.append(visit.folder.path)
                if len(seen) == 5:
                    stop.append(ToolCancelled("stop"))

    with pytest.raises(ToolCancelled):
        walk()
    assert seen == [".", "sub", "sub/000", "sub/001", "sub/002"]


def test_after_closing_every_step_is_refused(folder: SandboxDir) -> None:
    folder.close()

    with pytest.raises(ToolFailed, match="closed"):
        folder.names()
    for step in STEPS:
        with pytest.raises(ToolFailed, match="closed"):
            step(folder, "file")


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="descriptors cannot be counted here")
@pytest.mark.slow
def test_no_step_leaves_a_descriptor_behind(root: Path, fs: SandboxFS) -> None:
    with fs.open_dir(".") as folder:
        before = open_descriptors()
        folder.names()
        for name in ("file", "link", "fifo", "sub", "none"):
            for step in STEPS:
                try:
                    step(folder, name)
                except ToolFailed:
                    continue

        assert open_descriptors() == before


@pytest.mark.slow
def test_nothing_from_outside_is_read_while_a_file_and_a_link_change_places(
    tmp_path: Path, root: Path, resolver: ResolverName
) -> None:
    """Row 16."""
    (tmp_path / "secret").write_bytes(SECRET)
    (root / "file").write_bytes(INSIDE)
    (root / "other").symlink_to("../secret")
    seen: set[bytes | None] = set()

    with swapping(root / "file", root / "other"), SandboxFS(root, resolver=resolver) as fs, fs.open_dir(".") as folder:
        for _ in until_met(seen):
            try:
                seen.add(folder.read_child_file("file", PLENTY))
            except ToolFailed:
                seen.add(None)

    assert seen == {INSIDE, None}
