from __future__ import annotations

import errno
import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.projects import run
from toolkit.errors import SandboxViolation, SetupError, ToolCancelled, ToolFailed, ToolkitError
from toolkit.guard import DirEntry, FileInfo, ResolverName, SandboxDir, SandboxFS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src/main.py").write_bytes(b"0123456789")
    (root / "README.md").write_text("hello")
    (root / "link").symlink_to("src")
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver) as fs:
        yield fs


def listed(folder: SandboxDir) -> dict[str, DirEntry]:
    return {entry.name: entry for entry in folder.entries()}


def open_descriptors() -> set[str]:
    """Everything below ``/`` that is open; what earlier tests left to the collector is not counted."""
    gc.collect()
    return {f"{number} {_opened(number)}" for number in os.listdir("/dev/fd") if os.path.lexists(f"/dev/fd/{number}")}


def _opened(number: str) -> str:
    try:
        return os.readlink(f"/dev/fd/{number}")
    except OSError as error:  # a path that is too long to be told, or closed meanwhile
        return str(error)


# The root


@pytest.mark.parametrize("name", ["none", "README.md"])
def test_a_root_that_is_no_directory_is_a_setup_error_naming_it(root: Path, name: str) -> None:
    with pytest.raises(SetupError, match=name):
        SandboxFS(root / name)


def test_a_root_given_as_a_link_is_pinned_once(root: Path, resolver: ResolverName) -> None:
    (root.parent / "elsewhere").mkdir()
    link = root.parent / "root-link"
    link.symlink_to(root)
    with SandboxFS(link, resolver=resolver) as fs:
        link.unlink()
        link.symlink_to(root.parent / "elsewhere")

        assert fs.stat("README.md").kind == "file"
        assert fs.stat(f"{link}/README.md").kind == "file"


def test_a_root_renamed_and_replaced_stays_the_directory_that_was_opened(fs: SandboxFS, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "README.md").write_text("SECRET")
    root.rename(root.parent / "moved")
    root.symlink_to(outside)

    with fs.open_file("README.md") as file:
        assert file.read(100) == b"hello"
    with fs.open_file(f"{root}/README.md") as file:
        assert file.read(100) == b"hello"
    assert (root / "README.md").read_text() == "SECRET"


# Reading


def test_an_open_file_tells_its_facts_and_reads_in_bounded_pieces(fs: SandboxFS, root: Path) -> None:
    info = (root / "src/main.py").stat()

    with fs.open_file("./link//main.py") as file:
        assert file.path == "link/main.py"
        assert (file.size, file.mtime_ns, file.mode) == (10, info.st_mtime_ns, info.st_mode & 0o7777)
        assert file.identity == (info.st_dev, info.st_ino)
        assert (file.read(4), file.read(0), file.read(100), file.read(1)) == (b"0123", b"", b"456789", b"")
        file.seek(8)
        assert file.read(1 << 45) == b"89"  # nothing is set aside for what is not there
        with pytest.raises(ValueError, match="negative"):
            file.read(-1)
        with pytest.raises(ToolFailed):
            file.seek(-1)


def test_a_read_gives_all_it_was_asked_for_and_a_growing_file_does_not_stretch_it(fs: SandboxFS, root: Path) -> None:
    (root / "big").write_bytes(b"x" * 3_000_000)

    with fs.open_file("big") as file:
        assert len(file.read(2_500_000)) == 2_500_000
        with (root / "big").open("ab") as more:
            more.write(b"y" * 1_000_000)
        assert file.size == 3_000_000
        assert len(file.read(600_000)) == 600_000


def test_a_huge_sparse_file_costs_what_is_read(fs: SandboxFS, root: Path) -> None:
    try:
        with (root / "sparse").open("wb") as sparse:
            sparse.truncate(64 << 30)
    except OSError as error:
        assert error.errno in (errno.EFBIG, errno.ENOSPC)
        pytest.skip("this file system holds no 64 GiB file")

    with fs.open_file("sparse") as file:
        file.seek(63 << 30)
        assert file.size == 64 << 30
        assert file.read(3) == b"\0\0\0"


def test_reading_a_file_whose_name_was_given_to_another_stays_with_the_first(fs: SandboxFS, root: Path) -> None:
    with fs.open_file("README.md") as file:
        (root / "README.md").rename(root / "old")
        (root / "README.md").write_text("another")

        assert file.read(100) == b"hello"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_node_is_no_file(fs: SandboxFS, root: Path) -> None:
    try:
        os.mknod(root / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("device nodes are not permitted here")

    with pytest.raises(ToolFailed) as failure:
        fs.open_file("zero")

    assert failure.value.reason in ("NOT_FILE", "PERMISSION_DENIED")  # the latter where mounts forbid devices
    assert fs.stat("zero").kind == "other"


def test_stat_follows_links_that_stay_inside(fs: SandboxFS, root: Path) -> None:
    info = (root / "src/main.py").stat()

    assert fs.stat("link/main.py") == FileInfo("file", 10, info.st_mtime_ns)


# Permissions


def as_nobody(act: Callable[[], None]) -> str:
    """What ``act`` raises in a child process that is not root."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "nothing was raised"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            act()
        except (ToolkitError, OSError) as error:
            answer = str(error)
        finally:
            os.write(send, answer.encode())
            os._exit(0)
    os.close(send)
    os.waitpid(child, 0)
    with os.fdopen(receive, "rb") as answers:
        return answers.read().decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("text", ["README.md", "src/main.py", "src/../open.txt"])
@pytest.mark.slow
def test_what_may_not_be_read_is_said_without_the_host_path(fs: SandboxFS, root: Path, text: str) -> None:
    (root / "open.txt").touch()
    for name, mode in (("README.md", 0), ("src", 0), ("open.txt", 0o644), (".", 0o755)):
        (root / name).chmod(mode)

    message = as_nobody(lambda: fs.open_file(text).close())

    assert message.startswith("TOOL_FAILED: PERMISSION_DENIED")
    assert str(root.parent) not in message
    assert as_nobody(lambda: fs.open_file("open.txt").close()) == "nothing was raised"
    fs.open_file(text).close()  # root is not stopped by a mode


# Directories


def test_a_listing_shows_links_as_links_and_odd_names_escaped(fs: SandboxFS, root: Path) -> None:
    for name in (b"new\nline", b"\x1b[31m", b"not-utf8-\xff", "bidi-\u202e".encode()):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"odd")

    with fs.open_dir(".") as folder:
        entries = listed(folder)
        assert {name: entry.kind for name, entry in entries.items()} == {
            "src": "directory",
            "README.md": "file",
            "link": "symlink",
            "new\\x0aline": "file",
            "\\x1b[31m": "file",
            "not-utf8-\\xff": "file",
            "bidi-\\u202e": "file",
        }
        assert (entries["README.md"].size, entries["README.md"].raw) == (5, "README.md")
        assert entries["README.md"].mtime_ns == (root / "README.md").stat().st_mtime_ns
        with folder.open_child_file(entries["not-utf8-\\xff"]) as file:
            assert (file.path, file.read(10)) == ("not-utf8-\\xff", b"odd")
        assert listed(folder) == entries


def test_going_down_by_entries_gives_workspace_paths(fs: SandboxFS, root: Path) -> None:
    (root / "src/pkg").mkdir()
    (root / "src/pkg/x.py").write_text("x")

    with (
        fs.open_dir(".") as top,
        top.child(listed(top)["src"]) as src,
        src.child(listed(src)["pkg"]) as pkg,
        pkg.open_child_file(listed(pkg)["x.py"]) as file,
    ):
        assert (top.path, src.path, pkg.path, file.path) == (".", "src", "src/pkg", "src/pkg/x.py")
        assert file.read(10) == b"x"


def test_a_step_down_never_follows_a_link_even_one_that_came_after_the_listing(fs: SandboxFS, root: Path) -> None:
    with fs.open_dir(".") as folder:
        entries = listed(folder)
        shutil.rmtree(root / "src")
        (root / "src").symlink_to("/")
        (root / "README.md").unlink()
        (root / "README.md").symlink_to("/etc/hostname")

        for name, step, reason in [
            ("src", folder.child, "NOT_DIRECTORY"),
            ("link", folder.child, "NOT_DIRECTORY"),
            ("README.md", folder.open_child_file, "NOT_FILE"),
        ]:
            with pytest.raises(ToolFailed) as failure:
                step(entries[name])
            assert failure.value.reason == reason


@pytest.mark.parametrize("raw", ["..", ".", "", "../ws", "/etc", "src/main.py", "src\0"])
def test_a_step_down_is_exactly_one_name(fs: SandboxFS, raw: str) -> None:
    forged = DirEntry("forged", raw, "directory", 0, 0)

    with fs.open_dir(".") as folder:
        for step in (folder.child, folder.open_child_file):
            with pytest.raises(SandboxViolation):
                step(forged)


def test_a_name_that_vanishes_during_the_listing_is_left_out(fs: SandboxFS, root: Path) -> None:
    for number in range(100):
        (root / f"{number}.txt").touch()

    with fs.open_dir(".") as folder:
        entries = folder.entries()
        first = next(entries)
        for path in root.glob("*.txt"):
            path.unlink()
        rest = {entry.name for entry in entries}

    assert rest - {first.name} <= {"src", "README.md", "link"}


# Suggestions


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("src/mian.py", ["src/main.py"]),
        ("scr/main.py", ["src"]),
        ("readme.MD", ["README.md"]),
        ("link/man.py", ["link/main.py"]),
        ("src/main.py/x", ["src/main.py"]),
        ("nothing-like-it", []),
        (".", []),
    ],
)
def test_a_missing_name_brings_those_that_resemble_it(fs: SandboxFS, text: str, near: list[str]) -> None:
    assert fs.similar_paths(text) == near


def test_suggestions_stay_few_and_inside(fs: SandboxFS, root: Path) -> None:
    for number in range(10):
        (root / f"report-{number}.txt").touch()

    assert len(fs.similar_paths("report.txt")) == 3
    assert fs.similar_paths("report.txt/" + "a/" * 63) and fs.similar_paths("report.txt/" + "a/" * 64) == []
    assert len(fs.similar_paths("report.txt", limit=5)) == 5
    with pytest.raises(SandboxViolation):
        fs.similar_paths("../ws/README")


# Views and closing


def test_a_bound_view_asks_before_every_operation_and_every_read(fs: SandboxFS, root: Path) -> None:
    asked: list[str] = []
    view = fs.with_check(lambda: asked.append("asked"))
    file = view.open_file("README.md")
    folder = view.open_dir(".")
    entry = listed(folder)["src"]

    for act in (
        lambda: view.stat("src"),
        lambda: view.similar_paths("src/x"),
        lambda: file.read(1),
        lambda: file.seek(0),
        lambda: next(folder.entries()),
        lambda: folder.child(entry),
    ):
        asked.clear()
        act()
        assert asked
    asked.clear()
    fs.stat("src")
    assert not asked


def test_a_check_that_raises_ends_the_operation(fs: SandboxFS) -> None:
    stop: list[ToolCancelled] = []

    def check() -> None:
        for error in stop:
            raise error

    view = fs.with_check(check)
    with view.open_file("README.md") as file:
        stop.append(ToolCancelled("stopped"))

        for act in (lambda: file.read(1), lambda: view.open_file("README.md"), lambda: view.similar_paths("x")):
            with pytest.raises(ToolCancelled):
                act()


def test_after_closing_every_use_is_refused(fs: SandboxFS) -> None:
    file, folder, view = fs.open_file("README.md"), fs.open_dir("."), fs.with_check(lambda: None)
    entry = listed(folder)["README.md"]
    for opened in (file, folder, fs, fs):
        opened.close()

    for act in (
        lambda: file.read(1),
        lambda: file.seek(0),
        lambda: list(folder.entries()),
        lambda: folder.open_child_file(entry),
        lambda: fs.stat("."),
        lambda: fs.similar_paths("x"),
        lambda: fs.with_check(lambda: None).stat("."),
    ):
        with pytest.raises(ToolFailed, match="closed"):
            act()
    assert view.stat(".").kind == "directory"


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="descriptors cannot be counted here")
@pytest.mark.slow
def test_no_operation_leaves_a_descriptor_behind(root: Path, resolver: ResolverName) -> None:
    os.mkfifo(root / "fifo")
    (root / "out").symlink_to("../..")
    before = open_descriptors()

    with SandboxFS(root, resolver=resolver) as fs:
        for text in ("src/main.py", "link/../README.md", "link", "src", "fifo", "none", "out/x", "README.md/x"):
            for act in (fs.open_file, fs.open_dir, fs.stat, fs.similar_paths):
                try:
                    opened = act(text)
                except (ToolFailed, SandboxViolation):
                    continue
                if not isinstance(opened, (FileInfo, list)):
                    opened.close()
        del opened

    assert not {opened for opened in open_descriptors() - before if str(root) in opened}


def test_what_outlives_its_module_at_the_end_of_the_program_is_closed_quietly(tmp_path: Path) -> None:
    code = "import os; from toolkit.guard.files import handles; kept = handles.Descriptor(os.dup(0)); vars(handles).clear(); del kept"

    assert run([sys.executable, "-W", "error", "-c", code], tmp_path).stderr == ""
