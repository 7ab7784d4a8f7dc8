from __future__ import annotations

import errno
import gc
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.errors import SandboxViolation, SetupError, ToolCancelled, ToolFailed
from toolkit.files import locks
from toolkit.guard import ResolverName, SandboxFS, WrittenFile
from toolkit.guard.files import write
from toolkit.guard.files import write as rename


@pytest.fixture
def root(memory: Path) -> Path:
    root = memory / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src/main.py").write_bytes(b"old")
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver) as fs:
        yield fs


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def reason(act: Callable[..., object], *arguments: object, **options: object) -> str:
    with pytest.raises(ToolFailed) as failure:
        act(*arguments, **options)
    return str(failure.value.reason)


# Writing


def test_a_new_file_gets_what_umask_leaves_and_its_parents_are_made(fs: SandboxFS, root: Path) -> None:
    before = os.umask(0o027)
    try:
        written = fs.write_file("./new//deep/file.txt", b"content")
    finally:
        os.umask(before)

    assert written == WrittenFile("new/deep/file.txt", True, 7, 0o640)
    assert (root / "new/deep/file.txt").read_bytes() == b"content"
    assert stat.S_IMODE((root / "new/deep").stat().st_mode) == 0o750
    assert names(root / "new/deep") == {"file.txt"}


@pytest.mark.parametrize(
    ("mode", "kept"), [(0o600, 0o600), (0o755, 0o755), (0o444, 0o444), (0o6755, 0o755), (0o1666, 0o666)]
)
def test_a_replaced_file_keeps_its_mode_but_no_set_id_bits(fs: SandboxFS, root: Path, mode: int, kept: int) -> None:
    (root / "src/main.py").chmod(mode)

    written = fs.write_file("src/main.py", b"")

    assert written == WrittenFile("src/main.py", False, 0, kept)
    assert stat.S_IMODE((root / "src/main.py").stat().st_mode) == kept
    assert (root / "src/main.py").read_bytes() == b""
    assert names(root / "src") == {"main.py"}


def test_who_has_the_old_file_open_keeps_reading_it(fs: SandboxFS, root: Path) -> None:
    with fs.open_file("src/main.py") as file:
        fs.write_file("src/main.py", b"new")

        assert file.read(10) == b"old"


def test_a_file_that_must_be_new_is_not_replaced_even_if_it_came_just_now(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reason(fs.write_file, "src/main.py", b"new", create_only=True) == "ALREADY_EXISTS"

    write_all = write.write_all

    def meanwhile(number: int, data: bytes, check: Callable[[], None]) -> None:
        (root / "src/late.py").write_bytes(b"theirs")
        write_all(number, data, check)

    monkeypatch.setattr(write, "write_all", meanwhile)
    assert reason(fs.write_file, "src/late.py", b"ours", create_only=True) == "ALREADY_EXISTS"

    assert (root / "src/main.py").read_bytes() == b"old"
    assert (root / "src/late.py").read_bytes() == b"theirs"
    assert names(root / "src") == {"main.py", "late.py"}


def test_a_link_at_the_temporary_name_is_not_followed(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = root.parent / "secret"
    secret.write_bytes(b"SECRET")
    monkeypatch.setattr(os, "urandom", bytes)  # no longer unguessable
    (root / "src" / f".{bytes(16).hex()}").symlink_to(secret)

    assert reason(fs.write_file, "src/main.py", b"new") == "ALREADY_EXISTS"

    assert secret.read_bytes() == b"SECRET"
    assert (root / "src/main.py").read_bytes() == b"old"
    monkeypatch.undo()
    fs.write_file("src/main.py", b"new")
    assert (root / "src/main.py").read_bytes() == b"new"


def test_what_is_no_file_is_refused_at_once(fs: SandboxFS, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with suppress(PermissionError):
        os.mknod(root / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))

    for name in names(root):
        assert reason(fs.write_file, name, b"x") == "NOT_FILE"
        assert reason(fs.write_file, name, b"x", create_only=True) == "NOT_FILE"
    assert reason(fs.write_file, "new/", b"x") == "NOT_FILE"
    assert not (root / "new").exists()


# The end of a write in its middle

CANCELLED = ToolCancelled("stopped")


@pytest.mark.parametrize("allowed", range(6))
def test_a_write_that_is_cancelled_leaves_everything_as_it_was(fs: SandboxFS, root: Path, allowed: int) -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > allowed:
            raise CANCELLED

    view = fs.with_check(check)
    data = b"x" * (3 << 20)

    try:
        view.write_file("src/main.py", data)
    except ToolCancelled:
        assert (root / "src/main.py").read_bytes() == b"old"
    else:
        assert allowed == 5, "a write of three pieces asks at its beginning, before each piece and at its end"
        assert (root / "src/main.py").read_bytes() == data
    assert names(root / "src") == {"main.py"}


@pytest.mark.parametrize("failing", ["fsync", "fchmod", "rename", "write"])
def test_a_failing_step_leaves_everything_as_it_was(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "/host/path", "/host/path")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(ToolFailed) as failure:
        fs.write_file("src/main.py", b"new")
    monkeypatch.undo()

    assert failure.value.reason == "IO" and "/host" not in failure.value.message
    assert (root / "src/main.py").read_bytes() == b"old"
    assert names(root / "src") == {"main.py"}


def in_a_child(code: str, root: Path) -> str:
    prelude = (
        "import ctypes, os, resource, sys\nfrom toolkit.errors import ToolFailed\nfrom toolkit.guard import SandboxFS\n"
    )
    done = subprocess.run([sys.executable, "-c", prelude + code, str(root)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


WRITE_TOO_MUCH = """
with SandboxFS(root) as fs:
    fs.write_file("file", b"old")
    try:
        fs.write_file("file", b"x" * 300_000)
    except ToolFailed as error:
        print(error.reason, open(f"{root}/file").read(), os.listdir(root))
    fs.write_file("file", b"new")
    print(open(f"{root}/file").read())
"""


def test_a_size_limit_in_the_middle_of_a_write_keeps_the_original(root: Path) -> None:
    code = "root = sys.argv[1] + '/src/small'\nos.mkdir(root)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"

    assert in_a_child(code + WRITE_TOO_MUCH, root) == "TOO_LARGE old ['file']\nnew"


MOUNT = """
libc = ctypes.CDLL(None, use_errno=True)
user, group = os.geteuid(), os.getegid()
if libc.unshare(0x00020000 | (0x10000000 if user else 0)):
    sys.exit(print("no namespace"))
if user:
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
root = sys.argv[1]
private = libc.mount(None, b"/", None, 0x44000, None)
if private or libc.mount(b"tmpfs", root.encode(), b"tmpfs", 0, b"size=128k"):
    sys.exit(print("no mount"))
"""


def test_a_full_disk_in_the_middle_of_a_write_keeps_the_original(root: Path) -> None:
    answer = in_a_child(MOUNT + WRITE_TOO_MUCH, root)

    if answer.startswith("no "):
        pytest.skip(f"a small disk cannot be mounted here: {answer}")
    assert answer == "IO old ['file']\nnew"


# What was expected


def test_a_file_that_is_what_it_was_is_replaced(fs: SandboxFS, root: Path) -> None:
    info = (root / "src/main.py").stat()
    with fs.open_file("src/main.py") as file:
        seen = file.fingerprint()
        certain = file.fingerprint(file.read(100))

    assert (seen.dev, seen.ino, seen.size, seen.mtime_ns, seen.sha256) == (
        info.st_dev,
        info.st_ino,
        3,
        info.st_mtime_ns,
        None,
    )
    assert certain == fs.fingerprint("src/main.py") != seen
    fs.write_file("src/main.py", b"first", expected=certain)
    assert reason(fs.write_file, "src/main.py", b"second", expected=certain) == "CONFLICT"
    fs.write_file("src/main.py", b"second", expected=replace(fs.fingerprint("src/main.py"), sha256=None))
    assert (root / "src/main.py").read_bytes() == b"second"


def change_in_place(path: Path) -> None:
    path.write_bytes(b"olD")


def change_unseen(path: Path) -> None:
    info = path.stat()
    path.write_bytes(b"olD")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def change_by_replacing(path: Path) -> None:
    path.rename(path.with_name("kept"))
    path.write_bytes(b"old")


@pytest.mark.parametrize("change", [change_in_place, change_unseen, change_by_replacing, Path.unlink])
@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_changed_is_a_conflict_and_stays_as_it_is(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], late: bool
) -> None:
    path = root / "src/main.py"
    expected = fs.fingerprint("src/main.py")
    write_all = write.write_all

    def meanwhile(number: int, data: bytes, check: Callable[[], None]) -> None:
        change(path)
        write_all(number, data, check)

    if late:
        monkeypatch.setattr(write, "write_all", meanwhile)
    else:
        change(path)

    assert reason(fs.write_file, "src/main.py", b"new", expected=expected) == "CONFLICT"

    assert not path.exists() or path.read_bytes() in (b"old", b"olD")
    assert names(root / "src") <= {"main.py", "kept"}


def test_another_file_of_the_same_size_is_a_conflict_without_a_digest_too(fs: SandboxFS, root: Path) -> None:
    with fs.open_file("src/main.py") as file:
        expected = file.fingerprint()
    change_by_replacing(root / "src/main.py")

    assert reason(fs.write_file, "src/main.py", b"new", expected=expected) == "CONFLICT"


def test_a_file_that_is_expected_but_gone_is_a_conflict_and_no_directory_is_made(fs: SandboxFS, root: Path) -> None:
    expected = fs.fingerprint("src/main.py")

    assert reason(fs.write_file, "new/main.py", b"new", expected=expected) == "CONFLICT"
    assert not (root / "new").exists()


# Locks


def test_threads_that_write_one_file_never_mix(fs: SandboxFS, root: Path) -> None:
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]

    def work(content: bytes) -> None:
        for _ in range(20):
            fs.write_file("src/main.py", content)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert (root / "src/main.py").read_bytes() in (b"old", *contents)
    assert (root / "src/main.py").read_bytes() in contents
    assert names(root / "src") == {"main.py"}
    assert not locks._locks


def count_up(fs: SandboxFS, text: str) -> None:
    with fs.open_file(text) as file:
        number = int(file.read(10))
    fs.write_file(text, str(number + 1).encode())


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.slow
def test_who_reads_to_write_again_is_alone_under_the_lock(fs: SandboxFS, root: Path, locked: bool) -> None:
    (root / "count").write_text("0")
    (root / "link").symlink_to("count")
    texts = ["count", "link", str(root / "count"), "src/../count"]

    def work(text: str) -> None:
        for _ in range(100):
            if locked:
                with fs.with_check(lambda: None).lock(text):
                    count_up(fs, text)
            else:
                count_up(fs, text)

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ((root / "count").read_text() == "400") is locked


@pytest.mark.slow
def test_the_lock_of_a_file_that_is_not_there_yet_is_the_one_it_has_later(fs: SandboxFS, root: Path) -> None:
    second = threading.Thread(target=fs.write_file, args=("new/deep/file", b"second"))

    with fs.lock("new/deep/file"):
        fs.write_file("new/deep/file", b"first")
        second.start()
        second.join(0.2)
        assert second.is_alive()
        assert (root / "new/deep/file").read_bytes() == b"first"

    second.join()
    assert (root / "new/deep/file").read_bytes() == b"second"


def test_a_call_that_waits_for_a_lock_can_be_ended(fs: SandboxFS) -> None:
    stop = threading.Event()
    ended: list[str] = []

    def check() -> None:
        if stop.is_set():
            raise CANCELLED

    def wait() -> None:
        try:
            fs.with_check(check).write_file("src/main.py", b"new")
        except ToolCancelled:
            ended.append("ended")

    with fs.lock("src/main.py"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        stop.set()
        waiting.join(10)
        assert ended == ["ended"]


def test_several_locks_are_taken_in_one_order(fs: SandboxFS) -> None:
    def work(first: str, second: str) -> None:
        for _ in range(300):
            with fs.lock(first, second):
                pass

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


# Directories, removing, moving


def test_directories_are_made(fs: SandboxFS, root: Path) -> None:
    assert fs.make_dir("x/y/z") is True
    assert fs.make_dir("x/y/z/") is False
    assert reason(fs.make_dir, "x/y", exist_ok=False) == "ALREADY_EXISTS"
    assert reason(fs.make_dir, ".", exist_ok=False) == "ALREADY_EXISTS"
    assert reason(fs.make_dir, "src/main.py") == "ALREADY_EXISTS"
    assert reason(fs.make_dir, "p/q", parents=False) == "NOT_FOUND"
    assert names(root) == {"src", "x"}


def test_files_and_empty_directories_are_removed(fs: SandboxFS, root: Path) -> None:
    (root / "link").symlink_to("src")

    assert reason(fs.remove_dir, "src") == "IO"
    assert reason(fs.remove_dir, "link") == "NOT_DIRECTORY"
    assert reason(fs.remove_file, "src") == "NOT_FILE"
    fs.remove_file("link")
    fs.remove_file("src/main.py")
    fs.remove_dir("src/")

    assert names(root) == set()
    for text in (".", "/", "..", str(root), f"{root}/", "./."):
        with pytest.raises(SandboxViolation):
            fs.remove_dir(text)
        with pytest.raises(SandboxViolation):
            fs.remove_file(text)
    assert root.is_dir()


def without_renameat2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rename, "_renameat2", None)


@pytest.mark.parametrize("prepare", [lambda _: None, without_renameat2], ids=["renameat2", "without"])
def test_names_are_moved_and_nothing_is_replaced_unasked(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[pytest.MonkeyPatch], None]
) -> None:
    prepare(monkeypatch)
    (root / "other").write_bytes(b"other")
    (root / "empty").mkdir()
    (root / "full/x").mkdir(parents=True)
    (root / "link").symlink_to("other")

    for old, new in [("other", "src/main.py"), ("src", "empty"), ("src", "full"), ("link", "other"), ("other", "link")]:
        assert reason(fs.rename, old, new) == "ALREADY_EXISTS"
    assert reason(fs.rename, "none", "new") == "NOT_FOUND"
    assert reason(fs.rename, "other", "none/new") == "NOT_FOUND"
    assert reason(fs.rename, "src", "src/below") == "IO"
    assert names(root) == {"src", "other", "empty", "full", "link"}
    assert names(root / "src") == {"main.py"}

    fs.rename("src", "moved")
    fs.rename("link", "moved/link")
    fs.write_file("fresh", b"fresh", create_only=True)
    fs.rename("other", "moved/main.py", replace=True)
    fs.rename("moved/", "empty", replace=True)
    assert reason(fs.rename, "empty", "full", replace=True) == "IO"

    assert names(root) == {"empty", "full", "fresh"}
    assert (root / "empty/main.py").read_bytes() == b"other"
    assert os.readlink(root / "empty/link") == "other"


EVERY_CHANGE: tuple[Callable[[SandboxFS, str], object], ...] = (
    lambda fs, text: fs.write_file(text, b"x"),
    lambda fs, text: fs.make_dir(text),
    lambda fs, text: fs.rename(text, "moved"),
    lambda fs, text: fs.rename("new", text),
    lambda fs, text: fs.remove_file(text),
    lambda fs, text: fs.remove_dir(text),
    lambda fs, text: fs.fingerprint(text),
    lambda fs, text: fs.stat(text),
)


@pytest.mark.slow
def test_no_change_leaves_a_descriptor_behind(root: Path, resolver: ResolverName) -> None:
    (root / "out").symlink_to("..")
    (root / "src/.git").mkdir()
    gc.collect()  # what earlier tests left
    before = len(os.listdir("/dev/fd"))

    gc.disable()  # a descriptor that a cycle of objects holds is left behind, too
    try:
        with SandboxFS(root, resolver=resolver) as fs, fs.with_deny(["main.py"]) as view:
            for text in (
                "src/main.py",
                "new/deep/x",
                "out/x",
                "src",
                ".",
                "none/../x",
                "src/main.py/x",
                ".git/x",
                "out",
            ):
                for act in EVERY_CHANGE:
                    for one in (fs, view):
                        with suppress(ToolFailed, SandboxViolation):
                            act(one, text)
        after = len(os.listdir("/dev/fd"))
    finally:
        gc.enable()

    assert after == before


# Modes


@pytest.mark.parametrize(
    "act",
    [
        lambda fs: fs.write_file("src/main.py", b"new"),
        lambda fs: fs.write_file("new", b"new"),
        lambda fs: fs.make_dir("new"),
        lambda fs: fs.make_dir("src"),
        lambda fs: fs.remove_file("src/main.py"),
        lambda fs: fs.remove_dir("src"),
        lambda fs: fs.rename("src/main.py", "new"),
        lambda fs: fs.lock("src/main.py").__enter__(),
    ],
)
def test_a_read_only_workspace_is_not_changed(
    root: Path, resolver: ResolverName, act: Callable[[SandboxFS], object]
) -> None:
    with SandboxFS(root, resolver=resolver, mode="read-only") as fs:
        with pytest.raises(SandboxViolation, match="read-only"):
            act(fs)
        with fs.open_file("src/main.py") as file:
            assert file.read(10) == b"old"

    assert names(root) == {"src"}


def test_an_unknown_mode_is_a_setup_error(root: Path) -> None:
    with pytest.raises(SetupError, match="mode"):
        SandboxFS(root, mode="readonly")  # type: ignore[arg-type]
