"""Several files changed as one: all of them, or after any failure none."""

from __future__ import annotations

import errno
import gc
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.guard.fs.test_race import swapping
from tests.guard.fs.test_write import MOUNT, names, reason
from tests.guard.world import ROWS, Row, build, name_of
from toolkit.errors import SandboxViolation, ToolCancelled, ToolFailed, ToolkitError
from toolkit.files import locks, steps, transaction
from toolkit.guard import Drop, FileChange, Fingerprint, Put, ResolverName, SandboxFS
from toolkit.guard.files import write
from toolkit.guard.files import write as rename


@pytest.fixture
def root(memory: Path) -> Path:
    root = memory / "ws"
    (root / "src").mkdir(parents=True)
    for name in ("src/main.py", "src/old.py", "top.txt"):
        (root / name).write_bytes(name.encode())
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver, journal=str(root.parent / "state")) as fs:
        yield fs


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


BEFORE = {name: name.encode() for name in ("src/main.py", "src/old.py", "top.txt")}
AFTER = {"src/main.py": b"new", "new/deep/added.py": b"added", "moved.txt": b"moved"}


def mixed(fs: SandboxFS) -> list[FileChange]:
    """An update, an addition with its directories, a deletion, and a move made of both."""
    return [
        Put("src/main.py", b"new", fs.fingerprint("src/main.py")),
        Put("new/deep/added.py", b"added", None),
        Drop("src/old.py", fs.fingerprint("src/old.py")),
        Put("moved.txt", b"moved", None),
        Drop("top.txt", fs.fingerprint("top.txt")),
    ]


def journals(root: Path) -> list[Path]:
    return list((root.parent / "state").glob("*"))


def assert_untouched(root: Path) -> None:
    assert content(root) == BEFORE
    assert names(root) == {"src", "top.txt"}
    assert not journals(root)


# What is done


def test_all_changes_are_made(fs: SandboxFS, root: Path) -> None:
    fs.transaction(mixed(fs))

    assert content(root) == AFTER
    assert names(root) == {"src", "new", "moved.txt"}
    assert names(root.parent / "state") == set()


def test_nothing_to_do_is_done(fs: SandboxFS, root: Path) -> None:
    fs.transaction([])

    assert_untouched(root)


def test_modes_are_kept_given_or_left_to_umask(fs: SandboxFS, root: Path) -> None:
    (root / "src/main.py").chmod(0o640)
    (root / "src/old.py").chmod(0o6755)
    (root / "top.txt").chmod(0o600)
    before = os.umask(0o027)
    try:
        fs.transaction(
            [
                Put("src/main.py", b"kept", fs.fingerprint("src/main.py")),
                Put("src/old.py", b"without set-id bits", fs.fingerprint("src/old.py")),
                Put("top.txt", b"given", fs.fingerprint("top.txt"), mode=0o4755),
                Put("new.txt", b"new", None),
                Put("new.sh", b"new", None, executable=True),
                Put("given.txt", b"new", None, mode=0o604),
            ]
        )
    finally:
        os.umask(before)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*.*")}
    assert modes == {
        "main.py": 0o640,
        "old.py": 0o755,
        "top.txt": 0o755,
        "new.txt": 0o640,
        "new.sh": 0o750,
        "given.txt": 0o604,
    }


def test_links_that_stay_inside_are_followed_to_write_and_never_removed(fs: SandboxFS, root: Path) -> None:
    (root / "link").symlink_to("src/main.py")
    (root / "folder").symlink_to("src")

    fs.transaction(
        [
            Put("link", b"through", fs.fingerprint("link")),
            Put("folder/more.py", b"more", None),
            Drop("folder/old.py", fs.fingerprint("src/old.py")),
        ]
    )

    assert (root / "link").is_symlink() and (root / "folder").is_symlink()
    assert content(root / "src") == {"main.py": b"through", "more.py": b"more"}
    assert reason(fs.transaction, [Drop("link", fs.fingerprint("link"))]) == "NOT_FILE"
    assert (root / "link").is_symlink()


def test_what_a_hard_link_shares_with_another_place_keeps_its_content(fs: SandboxFS, root: Path) -> None:
    outside = root.parent / "outside"
    outside.hardlink_to(root / "top.txt")

    fs.transaction([Put("top.txt", b"new", fs.fingerprint("top.txt"))])

    assert (outside.read_bytes(), (root / "top.txt").read_bytes()) == (b"top.txt", b"new")


def test_extra_write_roots_take_part(memory: Path, root: Path) -> None:
    more, seen = memory / "more", memory / "seen"
    more.mkdir()
    seen.mkdir()
    with SandboxFS(root, write_roots=[more], read_roots=[seen], journal=str(memory / "state")) as fs:
        fs.transaction([Put(str(more / "sub/x"), b"x", None), Drop("top.txt", fs.fingerprint("top.txt"))])
        assert (more / "sub/x").read_bytes() == b"x" and not (root / "top.txt").exists()

        with pytest.raises(SandboxViolation, match="read-only root"):
            fs.transaction([Put(str(more / "y"), b"y", None), Put(str(seen / "z"), b"z", None)])
        assert names(more) == {"sub"}


def test_more_files_than_descriptors(memory: Path) -> None:
    root = memory / "ws"
    paths = [f"{number % 3}/{number}.txt" for number in range(300)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with SandboxFS(_made(root), journal=str(memory / "state")) as fs:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 20, hard))
        try:
            fs.transaction([Put(path, path.encode(), None) for path in paths])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert content(root) == {path: path.encode() for path in paths}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


# What is refused: nothing is changed


def change_top(root: Path) -> None:
    (root / "top.txt").write_bytes(b"theirs!")


@pytest.mark.parametrize(
    ("spoil", "why", "left"),
    [
        (change_top, "CONFLICT", {**BEFORE, "top.txt": b"theirs!"}),
        (lambda root: (root / "top.txt").unlink(), "CONFLICT", {k: v for k, v in BEFORE.items() if k != "top.txt"}),
        (lambda root: (root / "moved.txt").write_bytes(b"x"), "ALREADY_EXISTS", {**BEFORE, "moved.txt": b"x"}),
        (lambda root: (root / "moved.txt").mkdir(), "NOT_FILE", BEFORE),
        (lambda root: os.mkfifo(root / "moved.txt"), "NOT_FILE", BEFORE),
        (lambda root: (root / "new").write_bytes(b"a file"), "NOT_DIRECTORY", {**BEFORE, "new": b"a file"}),
    ],
)
def test_one_change_that_cannot_be_made_leaves_all_undone(
    fs: SandboxFS, root: Path, spoil: Callable[[Path], None], why: str, left: dict[str, bytes]
) -> None:
    changes = mixed(fs)
    spoil(root)
    here = names(root)

    assert reason(fs.transaction, changes) == why

    assert content(root) == left
    assert names(root) == here


def test_one_file_under_two_names_is_refused(fs: SandboxFS, root: Path) -> None:
    (root / "link").symlink_to("top.txt")
    seen = fs.fingerprint("top.txt")

    for twin in ("link", "src/../top.txt", "./top.txt"):
        with pytest.raises(ToolFailed, match="are the same file"):
            fs.transaction([Put("top.txt", b"1", seen), Put(twin, b"2", seen)])
    for new in ("x", "new/x"):
        for twin in (new, f"./{new}"):
            with pytest.raises(ToolFailed, match="are the same file"):
                fs.transaction([Put(new, b"1", None), Put(twin, b"2", None)])

    (root / "link").unlink()
    assert_untouched(root)


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".GIT/config", "sub/.git/x", "secret.env", "keys/a", "through/x"]
)
def test_a_protected_or_denied_path_among_good_ones_refuses_all(root: Path, path: str) -> None:
    (root / "through").symlink_to("keys")
    (root / "keys").mkdir()
    with SandboxFS(root, protected=["keys"]).with_deny(["*.env"]) as fs:
        with pytest.raises(SandboxViolation):
            fs.transaction([*mixed(fs), Put(path, b"x", None)])
        assert content(root) == BEFORE

        fs.transaction(mixed(fs))
        assert content(root) == AFTER


def test_a_read_only_workspace_is_not_changed(root: Path) -> None:
    with SandboxFS(root, mode="read-only") as fs, pytest.raises(SandboxViolation, match="read-only"):
        fs.transaction(mixed(fs))

    assert_untouched(root)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world")
    build(base)
    return base


def everything_below(base: Path) -> dict[str, tuple[int, int]]:
    """Each name with its inode and the time of its last change; for a directory that also shows removed files."""
    infos = {str(path): path.lstat() for path in base.rglob("*")}
    return {path: (info.st_ino, info.st_mtime_ns) for path, info in infos.items()}


@pytest.mark.each("row")
@pytest.mark.parametrize("row", [row for row in ROWS if row.open_file == "SANDBOX_VIOLATION"], ids=name_of)
def test_one_escape_among_good_changes_leaves_all_undone(base: Path, row: Row, resolver: ResolverName) -> None:
    before = everything_below(base)
    text = row.text.format(base=base)
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        good: list[FileChange] = [Put("good.txt", b"x", None), Drop("top.txt", fs.fingerprint("top.txt"))]
        for bad in (Put(text, b"x", None), Drop(text, fs.fingerprint("top.txt"))):
            with pytest.raises((SandboxViolation, ToolFailed)) as caught:
                fs.transaction([*good, bad])
            assert str(base) not in caught.value.message.replace(text, "")

    assert everything_below(base) == before


# What ends it in its middle


@pytest.mark.each("allowed")
@pytest.mark.parametrize("allowed", range(12))
def test_a_cancelled_transaction_leaves_all_as_it_was(fs: SandboxFS, root: Path, allowed: int) -> None:
    changes = mixed(fs)
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > allowed:
            raise ToolCancelled("stopped")

    with pytest.raises(ToolCancelled):
        fs.with_check(check).transaction(changes)

    assert_untouched(root)


CALLS = ("rename", "link", "unlink", "mkdir", "rmdir", "write", "fsync", "fchmod")


def failing_at(number: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the n-th call that changes something fail. Returns a counter of these calls."""
    count = [0]

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] == number:
                raise error
            return act(*arguments, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    monkeypatch.setattr(rename, "_renameat2", rename._renameat2 and counted(rename._renameat2))
    return count


@pytest.mark.parametrize("has_renameat2", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "/host/path", "/host/path"), KeyboardInterrupt()], ids=repr)
@pytest.mark.slow
def test_any_single_failure_leaves_all_as_it_was_or_all_done(
    memory: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, has_renameat2: bool
) -> None:
    outcomes = set()
    for number in range(1, 200):
        base = memory / str(number)
        root = base / "ws"
        (root / "src").mkdir(parents=True)
        for name, data in BEFORE.items():
            (root / name).write_bytes(data)
        with SandboxFS(root, journal=str(base / "state")) as fs, monkeypatch.context() as patch:
            changes = mixed(fs)
            if not has_renameat2:
                patch.setattr(rename, "_renameat2", None)
            count = failing_at(number, error, patch)
            try:
                fs.transaction(changes)
            except ToolkitError as failure:
                assert "/host" not in str(failure)
            except KeyboardInterrupt:
                pass
            told = [one.troubles for one in fs.recover()]
        assert content(root) in (BEFORE, AFTER), number
        assert not [name for name in names(root) | names(root / "src") if name.startswith(".")], number
        assert not journals(root) and told in ([], [()])
        outcomes.add(content(root) == AFTER)
        if count[0] < number:
            break
    assert outcomes == {True, False}


IN_A_CHILD = """
import ctypes, os, resource, sys
from toolkit.errors import ToolFailed
from toolkit.guard import Drop, Put, SandboxFS
"""

TOO_MUCH = """
with SandboxFS(root, journal=state) as fs:
    fs.transaction([Put("a", b"a", None), Put("b", b"b", None), Put("c", b"c", None)])
    seen = {name: fs.fingerprint(name) for name in "abc"}
    try:
        fs.transaction([
            Put("a", b"new", seen["a"]), Put("new/x", b"x", None), Drop("c", seen["c"]), Put("b", b"x" * 300_000, seen["b"])
        ])
    except ToolFailed as error:
        print(error.reason, [open(f"{root}/{name}").read() for name in "abc"], sorted(os.listdir(root)), os.listdir(state))
    fs.transaction([Put("a", b"new", seen["a"])])
    print(open(f"{root}/a").read())
"""


def in_a_child(code: str, root: Path, *more: str) -> str:
    done = subprocess.run([sys.executable, "-c", IN_A_CHILD + code, str(root), *more], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_size_limit_in_the_middle_keeps_every_original(root: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    place = "root, state = sys.argv[1] + '/src/small', sys.argv[1] + '/../state'\nos.mkdir(root)\n"

    answer = in_a_child(place + limit + TOO_MUCH, root)

    assert answer == "TOO_LARGE ['a', 'b', 'c'] ['a', 'b', 'c'] []\nnew"


def test_a_full_disk_in_the_middle_keeps_every_original(root: Path) -> None:
    place = "state = sys.argv[1] + '/../state'\n"

    answer = in_a_child(MOUNT + place + TOO_MUCH, root)

    if answer.startswith("no "):
        pytest.skip(f"a small disk cannot be mounted here: {answer}")
    assert answer == "IO ['a', 'b', 'c'] ['a', 'b', 'c'] []\nnew"


NO_ROOM_FOR_THE_JOURNAL = """
state, root = root + "/state", root + "/../other"
os.mkdir(root)
os.mkdir(state, 0o700)
try:
    open(state + "/full", "wb", 0).write(b"x" * 200_000)
finally:
    with SandboxFS(root, journal=state) as fs:
        try:
            fs.transaction([Put(str(number), b"x", None) for number in range(100)])
        except ToolFailed as error:
            print(error.reason, error.message, os.listdir(root), os.listdir(state))
        os.unlink(state + "/full")
        fs.transaction([Put("a", b"new", None)])
        print(os.listdir(root), os.listdir(state))
"""


def test_no_room_for_the_journal_changes_nothing(root: Path) -> None:
    answer = in_a_child(MOUNT + NO_ROOM_FOR_THE_JOURNAL, root)

    if answer.startswith("no "):
        pytest.skip(f"a small disk cannot be mounted here: {answer}")
    words = "nothing was changed: the journal could not be written: no space left on device"
    assert answer == f"IO {words} [] ['full']\n['a'] []"


# Others at work on the same files


@pytest.mark.each("name", "late")
@pytest.mark.parametrize("has_renameat2", [True, False])
@pytest.mark.parametrize("name", ["src/main.py", "src/old.py", "moved.txt", "top.txt"])
@pytest.mark.parametrize("late", ["after it was read", "after all was prepared", "in the last instant"])
def test_what_somebody_changes_meanwhile_is_never_lost(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch, name: str, late: str, has_renameat2: bool
) -> None:
    if not has_renameat2:
        monkeypatch.setattr(rename, "_renameat2", None)
    changes = mixed(fs)
    path = root / name
    done: list[int] = []

    def interfere() -> None:
        if not done:
            done.append(path.write_bytes(b"theirs"))

    def is_unchanged(folder: int, name: str, expected: Fingerprint) -> bool:
        interfere()
        return write.is_unchanged(folder, name, expected)

    def before(act: Callable[..., None]) -> Callable[..., None]:
        def acting(*arguments: Any) -> None:
            if path.name in arguments:
                interfere()
            act(*arguments)

        return acting

    if late == "after it was read":
        interfere()
    elif late == "after all was prepared":
        monkeypatch.setattr(transaction, "is_unchanged", is_unchanged)
    else:
        monkeypatch.setattr(steps, "exchange", before(rename.exchange))
        monkeypatch.setattr(steps, "move_new", before(rename.move_new))

    assert reason(fs.transaction, changes) in ("CONFLICT", "ALREADY_EXISTS")

    monkeypatch.undo()
    assert content(root) == {**BEFORE, name: b"theirs"}
    assert names(root) == {"src", "top.txt", name.split("/")[0]}
    assert not journals(root)


def test_a_directory_somebody_makes_meanwhile_is_used_and_kept(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = mixed(fs)

    def meanwhile(folder: int, old: str, new_folder: int, new: str) -> None:
        (root / "new").mkdir(exist_ok=True)
        rename.move_new(folder, old, new_folder, new)

    monkeypatch.setattr(transaction, "move_new", meanwhile)
    change_top(root)
    fs_changes = [change for change in changes if change.path != "top.txt"]
    fs.transaction(fs_changes)

    assert (root / "new/deep/added.py").read_bytes() == b"added"

    (root / "new/deep/added.py").unlink()
    (root / "new/deep").rmdir()
    (root / "new").rmdir()
    monkeypatch.setattr(transaction, "is_unchanged", lambda *_: False)
    seen = fs.fingerprint("top.txt")
    assert reason(fs.transaction, [Put("new/deep/x", b"x", None), Drop("top.txt", seen)]) == "CONFLICT"
    assert (root / "new").is_dir() and names(root / "new") == set()


def test_transactions_of_many_threads_come_one_after_the_other(memory: Path) -> None:
    root = memory / "ws"
    files = [f"{number}.txt" for number in range(5)]
    for name in files:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("0")
    with SandboxFS(root, journal=str(memory / "state")) as fs:

        def work(order: list[str]) -> None:
            for _ in range(20):
                with fs.lock(*order):
                    changes: list[FileChange] = []
                    for name in order:
                        with fs.open_file(name) as file:
                            number = int(file.read(10))
                            changes.append(Put(name, str(number + 1).encode(), file.fingerprint()))
                    fs.transaction(changes)

        threads = [
            threading.Thread(target=work, args=(order,), daemon=True) for order in (files, files[::-1], files[2:])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    assert [(root / name).read_text() for name in files] == ["40", "40", "60", "60", "60"]
    assert names(root) == set(files) and names(memory / "state") == set()
    assert not locks._locks


@pytest.mark.slow
def test_a_directory_swapped_with_a_link_is_never_written_through(memory: Path, resolver: ResolverName) -> None:
    root, outside = memory / "ws", memory / "outside"
    for folder in (root / "dir", outside):
        folder.mkdir(parents=True)
        for name in ("a", "b"):
            (folder / name).write_bytes(b"SECRET")
    (root / "link").symlink_to("../outside")
    before = everything_below(outside)

    with SandboxFS(root, resolver=resolver, journal=str(memory / "state")) as fs:
        with swapping(root / "dir", root / "link"):
            for turn in range(1500):
                new, other = f"dir/sub{turn}/x", "link/b" if turn % 2 else "dir/b"
                with suppress(SandboxViolation, ToolFailed):
                    changes = [
                        Put("dir/a", b"inside", fs.fingerprint("dir/a")),
                        Put(new, b"x", None),
                        Put(other, b"inside", fs.fingerprint(other)),
                    ]
                    fs.transaction(changes)
                    fs.transaction([Drop(new, fs.fingerprint(new))])
        # How many got through is up to chance; that one can, and that a link cannot be written through, is not.
        for name in ("dir", "link"):
            if (root / name).is_symlink():
                with pytest.raises(SandboxViolation):
                    fs.transaction([Put(f"{name}/a", b"inside", None)])
            else:
                fs.transaction([Put(f"{name}/a", b"inside", fs.fingerprint(f"{name}/a"))])

    assert everything_below(outside) == before
    assert names(memory / "state") == set()
    (real,) = (root / name for name in ("dir", "link") if not (root / name).is_symlink())
    assert not list(real.rglob(".*"))
    for name in ("dir", "link"):  # one of them is the link by now
        (root / name / "a").write_bytes(b"inside")
    assert everything_below(outside) != before


def test_a_link_at_the_temporary_name_is_not_followed(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = root.parent / "secret"
    secret.write_bytes(b"SECRET")
    monkeypatch.setattr(os, "urandom", bytes)  # no longer unguessable
    (root / f".{bytes(16).hex()}").symlink_to(secret)

    assert reason(fs.transaction, [Put("moved.txt", b"new", None)]) == "ALREADY_EXISTS"

    assert secret.read_bytes() == b"SECRET"
    (root / f".{bytes(16).hex()}").unlink()
    assert_untouched(root)


@pytest.mark.slow
def test_no_transaction_leaves_a_descriptor_behind(root: Path, resolver: ResolverName) -> None:
    (root / "out").symlink_to("..")
    gc.collect()
    before = len(os.listdir("/dev/fd"))

    gc.disable()  # a descriptor that a cycle of objects holds is left behind, too
    try:
        with SandboxFS(root, resolver=resolver, journal=str(root.parent / "state")) as fs:
            for bad in ("out/x", "src", "src/main.py/x", ".git/x", "top.txt", "fresh"):
                with suppress(ToolFailed, SandboxViolation):
                    fs.transaction([*mixed(fs), Put(bad, b"x", None)])
            fs.recover()
        after = len(os.listdir("/dev/fd"))
    finally:
        gc.enable()

    assert content(root)["fresh"] == b"x"
    assert after == before


FAIL_AND_COUNT = """
import gc
state, kept = sys.argv[1] + "/../state", []

def descriptors():
    return len(os.listdir("/dev/fd"))

with SandboxFS(sys.argv[1], journal=state) as fs:
    fs.write_text("first", "x")  # opens the file of the locks, which this process keeps
    gc.disable()
    before = descriptors()
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        fs.transaction([Put("new/deep/small", b"x", None), Put("src/large", b"x" * 200_000, None)])
    except ToolFailed as error:
        message = error.message
        if sys.argv[3] == "kept":
            kept.append(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(message, descriptors() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("error", ["kept", "dropped"])
@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (100_000, "'src/large' would be larger than the file size limit"),
        (0, "nothing was changed: the journal could not be written: file too large"),
    ],
)
def test_a_failure_in_the_middle_leaves_no_descriptor_behind(root: Path, limit: int, message: str, error: str) -> None:
    assert in_a_child(FAIL_AND_COUNT, root, str(limit), error) == f"{message} 0"
