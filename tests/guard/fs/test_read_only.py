"""Places that trusted code is loaded from: read, but not changed by any spelling, link or move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.fs.test_protect import CHANGES, READS, snapshot
from toolkit.errors import SandboxViolation, SetupError
from toolkit.guard import Drop, Put, ResolverName, SandboxFS

LOADS_CODE = "the toolkit or its Python interpreter loads code or settings from"


@pytest.fixture
def root(memory: Path) -> Path:
    """``env`` is a link to ``envs/current``, which is a link to ``envs/v1``: that is where the interpreter is."""
    root = memory / "ws"
    for name in (
        "envs/v1/pyvenv.cfg",
        "envs/v1/lib/site.py",
        "src/app.py",
        "plain.txt",
        "odd[1]*/code.py",
        "odd1x/code.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("old")
    (root / "envs/v2").mkdir()
    (root / "empty").mkdir()
    (root / "envs/current").symlink_to("v1")
    (root / "env").symlink_to("envs/current")
    (root / "shortcut").symlink_to("envs/v1/lib")
    (root / "cfg").symlink_to("env/pyvenv.cfg")
    return root


def places(root: Path) -> list[str]:
    return [f"{root}/env/", f"{root}/src/not/there/yet", f"{root}/odd[1]*", f"{root.parent}/elsewhere"]


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver, read_only=places(root)) as fs:
        yield fs


@pytest.fixture
def unguarded(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver) as fs:
        yield fs


SPELLINGS = [
    "envs/v1/pyvenv.cfg",
    "envs/v1/new.pth",
    "envs/v1/new/deep.pth",
    "ENVS/V1/pyvenv.cfg",
    "env/pyvenv.cfg",
    "env/lib/new.pth",
    "./env//lib/../pyvenv.cfg",
    "src/../env/lib/site.py",
    "envs/current/pyvenv.cfg",
    "shortcut/site.py",
    "shortcut/../pyvenv.cfg",
    "{root}/env/pyvenv.cfg",
    "src/not/there/yet",
    "src/not/there/yet/x",
    "odd[1]*/code.py",
]


@pytest.mark.each("text", "change")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("text", SPELLINGS)
def test_nothing_at_or_below_is_changed(fs: SandboxFS, root: Path, text: str, change: str) -> None:
    before = snapshot(root)

    with pytest.raises(SandboxViolation, match=LOADS_CODE):
        CHANGES[change](fs, text.format(root=root))

    assert snapshot(root) == before


@pytest.mark.parametrize("text", SPELLINGS)
def test_without_the_list_each_of_them_is_written(unguarded: SandboxFS, root: Path, text: str) -> None:
    """The control."""
    unguarded.write_file(text.format(root=root), b"evil")


def test_a_link_of_another_name_is_not_written_through(fs: SandboxFS, unguarded: SandboxFS, root: Path) -> None:
    with pytest.raises(SandboxViolation, match=LOADS_CODE):
        fs.write_file("cfg", b"home = /tmp/evil")
    assert (root / "envs/v1/pyvenv.cfg").read_text() == "old"
    unguarded.write_file("cfg", b"evil")
    assert (root / "envs/v1/pyvenv.cfg").read_text() == "evil"


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("envs", "moved"),
        ("envs/v1", "moved"),
        ("envs/current", "moved"),
        ("env", "moved"),
        ("envs/v2", "envs/current"),
        ("empty", "env"),
        ("plain.txt", "env"),
        ("odd[1]*", "moved"),
        ("empty", "src/not/there"),
    ],
)
def test_the_way_there_is_not_moved_or_replaced(
    fs: SandboxFS, unguarded: SandboxFS, root: Path, old: str, new: str
) -> None:
    (root / "src/not").mkdir()
    before = snapshot(root)

    with pytest.raises(SandboxViolation, match=LOADS_CODE):
        fs.rename(old, new, replace=True)

    assert snapshot(root) == before
    if not (root / new).is_dir() and not (root / new).is_symlink():
        unguarded.rename(old, new)
        assert snapshot(root) != before


@pytest.mark.parametrize("link", ["env", "envs/current"])
def test_a_link_on_the_way_is_not_removed(fs: SandboxFS, unguarded: SandboxFS, root: Path, link: str) -> None:
    with pytest.raises(SandboxViolation, match=LOADS_CODE):
        fs.remove_file(link)
    assert (root / link).is_symlink()
    unguarded.remove_file(link)
    assert not (root / link).is_symlink()


def test_a_transaction_changes_nothing_there(fs: SandboxFS, root: Path) -> None:
    expected = fs.fingerprint("env/pyvenv.cfg")
    for change in (
        Put("env/pyvenv.cfg", b"evil", expected),
        Put("shortcut/new.pth", b"evil", None),
        Drop("env/pyvenv.cfg", expected),
    ):
        with pytest.raises(SandboxViolation, match=LOADS_CODE):
            fs.transaction([Put("fine.txt", b"new", None), change])
    assert not (root / "fine.txt").exists()


@pytest.mark.parametrize("read", READS)
def test_it_is_read_as_before(fs: SandboxFS, read: str) -> None:
    for text in ("env", "shortcut") if read == "open_dir" else ("env/pyvenv.cfg", "cfg", "shortcut/site.py"):
        READS[read](fs, text)


def test_its_neighbours_are_changed_as_before(fs: SandboxFS, root: Path) -> None:
    for text in (
        "src/app.py",
        "envs/v2/pyvenv.cfg",
        "envs/new",
        "src/not/there/other",
        "odd1x/code.py",
        "environment/x",
    ):
        fs.write_file(text, b"new")
        assert (root / text).read_bytes() == b"new"
    fs.make_dir("src/more")
    fs.rename("envs/v2", "envs/v3")
    fs.rename("src/more", "src/fewer")
    fs.remove_dir("src/fewer")
    fs.remove_file("shortcut")  # leads there, but nothing that is trusted goes that way
    fs.remove_file("envs/new")


def test_a_write_root_is_covered_as_well(root: Path, resolver: ResolverName) -> None:
    other = root.parent / "other"
    (other / "lib").mkdir(parents=True)
    (other / "lib/code.py").write_text("old")

    with SandboxFS(root, resolver=resolver, write_roots=[other], read_only=[f"{other}/lib"]) as fs:
        with pytest.raises(SandboxViolation, match=LOADS_CODE):
            fs.write_file(f"{other}/lib/code.py", b"evil")
        fs.write_file(f"{other}/free.py", b"new")


def test_a_root_that_is_named_over_a_link_is_the_same_root(root: Path, resolver: ResolverName) -> None:
    (root.parent / "alias").symlink_to("ws")

    for given, place in ((root.parent / "alias", root / "env"), (root, root.parent / "alias/env")):
        with (
            SandboxFS(given, resolver=resolver, read_only=[str(place)]) as fs,
            pytest.raises(SandboxViolation, match=LOADS_CODE),
        ):
            fs.write_file("env/pyvenv.cfg", b"evil")


def test_loops_lead_nowhere(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    with SandboxFS(root, read_only=[f"{root}/loop/x"]) as fs:
        fs.write_file("plain.txt", b"new")
        with pytest.raises(SandboxViolation, match=LOADS_CODE):
            fs.remove_file("loop")


@pytest.mark.parametrize("wrong", ["/ws", ["relative"], [3], ["/a\0b"]])
def test_what_is_not_a_list_of_absolute_paths_is_refused(root: Path, wrong: list[str]) -> None:
    with pytest.raises(SetupError, match="read_only must be"):
        SandboxFS(root, read_only=wrong)
