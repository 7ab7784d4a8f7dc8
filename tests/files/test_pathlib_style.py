"""The methods with the names of pathlib: they answer as the methods they are made of, and keep their limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guard.world import ROWS, SECRET, Row, build, name_of
from toolkit.errors import SandboxViolation, ToolCancelled, ToolFailed, ToolkitError
from toolkit.guard import ResolverName, SandboxFS


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world")
    build(base)
    return base


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".hidden/e.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver) as fs:
        yield fs


def failure(action: Callable[[], object]) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        action()
    return caught.value


# The table of paths


def outcome(action: Callable[[], object]) -> str:
    try:
        return str(action())
    except ToolFailed as error:
        return str(error.reason)
    except ToolkitError as error:
        return error.code


@pytest.mark.each("row")
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_method_answers_as_the_table_of_paths_says(row: Row, base: Path, resolver: ResolverName) -> None:
    text = row.text.format(base=base)
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        assert outcome(lambda: fs.read_text(text)) == row.open_file
        assert outcome(lambda: fs.read_bytes(text).decode()) == row.open_file
        kind = "None" if row.stat in ("NOT_FOUND", "NOT_DIRECTORY") else row.stat
        assert outcome(lambda: fs.is_file(text)) == (
            kind if kind.isupper() else str(kind == "file")
        )  # an error stays an error
        assert outcome(lambda: fs.exists(text)) == (kind if kind.isupper() else str(kind != "None"))
        listing = outcome(lambda: (list(fs.iterdir(text)), "listed")[1])
        assert listing == row.open_dir


def test_a_glob_never_leaves_the_root_nor_follows_a_link(base: Path, resolver: ResolverName) -> None:
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        found = list(fs.glob("**/*"))
        assert "outside-rel" in found
        assert not [path for path in found if path.startswith(("outside-rel/", "parent/", "dir-link/"))]
        contents = [fs.read_text(path) for path in found if not os.path.islink(base / "ws" / path) and fs.is_file(path)]
        assert SECRET not in contents
        for pattern in ("../*", "a/../../*", "*/../../s*", "outside-rel/*"):
            with pytest.raises(SandboxViolation):
                list(fs.glob(pattern))
        assert list(fs.glob("dir-link/*.txt")) == ["dir-link/file.txt"]


# Whole files


def test_a_text_is_written_and_read_as_it_is(fs: SandboxFS, root: Path) -> None:
    text = "one\r\ntwo\n\ufeffthree ü"

    written = fs.write_text("new/file.txt", text)

    assert (written.created, written.size) == (True, len(text.encode()))
    assert (root / "new/file.txt").read_bytes() == text.encode()
    assert fs.read_text("new/file.txt") == text
    assert fs.write_text("new/file.txt", "ü", "latin-1").created is False
    assert fs.read_bytes("new/file.txt") == b"\xfc"
    assert fs.read_text("new/file.txt", "latin-1") == "ü"


def test_a_file_that_is_not_text_is_refused_with_the_way_out(fs: SandboxFS, root: Path) -> None:
    (root / "image.png").write_bytes(b"\x89PNG")

    error = failure(lambda: fs.read_text("image.png"))

    assert (error.reason, error.details["path"]) == ("BINARY_NOT_SUPPORTED", "image.png")
    assert "not utf-8 text" in error.message and "read_bytes" in error.message


@pytest.mark.parametrize(("text", "encoding"), [("\ud800", "utf-8"), ("€", "latin-1")])
def test_a_text_that_the_encoding_does_not_have_changes_nothing(
    fs: SandboxFS, root: Path, text: str, encoding: str
) -> None:
    assert failure(lambda: fs.write_text("a.py", text, encoding)).reason == "BINARY_NOT_SUPPORTED"
    assert (root / "a.py").read_text() == "a.py"


def test_sizes_are_bounded_in_both_directions(fs: SandboxFS, root: Path) -> None:
    os.truncate(root / "a.py", 64 * 2**30)

    error = failure(lambda: fs.read_bytes("a.py"))
    assert (error.reason, error.details["size"]) == ("TOO_LARGE", 64 * 2**30)
    assert "max_bytes" in error.message
    assert failure(lambda: fs.read_text("src/b.py", max_bytes=7)).reason == "TOO_LARGE"
    assert fs.read_text("src/b.py", max_bytes=8) == "src/b.py"

    error = failure(lambda: fs.write_bytes("src/b.py", b"123456789", max_bytes=8))
    assert error.reason == "TOO_LARGE" and "nothing was changed" in error.message
    assert failure(lambda: fs.write_bytes("x/y", bytes(10 * 2**20 + 1))).reason == "TOO_LARGE"
    assert not (root / "x").exists() and (root / "src/b.py").read_text() == "src/b.py"


# What is there


def test_what_is_there(fs: SandboxFS, root: Path) -> None:
    (root / "link").symlink_to("src")
    (root / "dangling").symlink_to("none")
    os.mkfifo(root / "fifo")

    assert (fs.exists("src"), fs.is_dir("src"), fs.is_file("src")) == (True, True, False)
    assert (fs.exists("a.py"), fs.is_dir("a.py"), fs.is_file("a.py")) == (True, False, True)
    assert (fs.is_dir("link"), fs.is_file("link/b.py")) == (True, True)
    assert (fs.exists("fifo"), fs.is_file("fifo")) == (True, False)
    assert not any(map(fs.exists, ["none", "none/x", "a.py/x", "a.py/", "dangling"]))


def test_a_listing_has_paths_that_can_be_used(fs: SandboxFS, root: Path) -> None:
    (root / "src" / "two\nlines").write_text("odd")
    with open(os.fsencode(root / "src") + b"/\xff", "w"):
        pass

    assert list(fs.iterdir()) == [".hidden", "a.py", "src"]
    assert list(fs.iterdir("./src/")) == ["src/b.py", "src/d.txt", "src/deep", "src/two\nlines"]
    assert fs.read_text("src/two\nlines") == "odd"
    assert failure(lambda: fs.iterdir("a.py")).reason == "NOT_DIRECTORY"
    assert failure(lambda: fs.iterdir("none")).reason == "NOT_FOUND"


def test_the_paths_of_another_root_are_absolute(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.py").write_text("x")
    with SandboxFS(root, read_roots=[other]) as fs:
        assert list(fs.iterdir(str(other))) == list(fs.glob(f"{other}/*")) == [f"{other}/x.py"]
        assert fs.read_text(f"{other}/x.py") == "x"
        with pytest.raises(SandboxViolation, match="read-only root"):
            fs.write_text(f"{other}/x.py", "y")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py"]),
        ("a.py", ["a.py"]),
        ("none.py", []),
        ("none/*.py", []),
        ("a.py/*", []),
        ("src/*", ["src/b.py", "src/d.txt", "src/deep"]),
        ("src/*/", ["src/deep"]),
        ("**/*.py", [".hidden/e.py", "a.py", "src/b.py", "src/deep/c.py"]),
        ("src/**", ["src/b.py", "src/d.txt", "src/deep", "src/deep/c.py"]),
        ("src/**/c.py", ["src/deep/c.py"]),
        ("**/**/**/**/**/**/c.py", ["src/deep/c.py"]),
        ("**/src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("*/[bd].*", ["src/b.py", "src/d.txt"]),
        ("?.py", ["a.py"]),
        ("A.PY", []),
        (".", []),
    ],
)
def test_a_glob_finds_each_path_once(fs: SandboxFS, pattern: str, expected: list[str]) -> None:
    assert list(fs.glob(pattern)) == expected


# The rules


def test_what_is_denied_can_be_neither_read_nor_found(fs: SandboxFS) -> None:
    with fs.with_deny(["src/deep", "a.py"]) as view:
        for action in (view.read_text, view.read_bytes, view.exists, view.is_file):
            with pytest.raises(SandboxViolation, match="deny rule"):
                action("a.py")
        with pytest.raises(SandboxViolation, match="deny rule"):
            view.write_text("src/deep/new.py", "x")
        assert list(view.iterdir()) == [".hidden", "src"]
        assert list(view.glob("**/*.py")) == [".hidden/e.py", "src/b.py"]
        with pytest.raises(SandboxViolation):
            list(view.glob("src/deep/*"))


def test_a_view_for_reading_changes_nothing(fs: SandboxFS, root: Path) -> None:
    view = fs.for_reading()
    changes: list[Callable[[], object]] = [
        lambda: view.write_text("a.py", "x"),
        lambda: view.write_bytes("new", b"x"),
        lambda: view.write_file("a.py", b"x"),
        lambda: view.make_dir("new"),
        lambda: view.remove_file("a.py"),
        lambda: view.remove_dir("src/deep"),
        lambda: view.rename("a.py", "b.py"),
        lambda: view.lock("a.py").__enter__(),
    ]
    for change in changes:
        with pytest.raises(SandboxViolation, match="may only read files"):
            change()
    assert view.read_text("a.py") == "a.py"
    assert fs.write_text("a.py", "the original still writes").created is False


def test_a_cancelled_call_reads_and_lists_nothing_more(fs: SandboxFS) -> None:
    def stop() -> None:
        raise ToolCancelled("stop")

    found = fs.with_check(stop)
    for action in (found.read_text, found.exists, found.iterdir, lambda path: list(found.glob(path))):
        with pytest.raises(ToolCancelled):
            action("src")
