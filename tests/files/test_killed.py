"""A process is killed at every step of a transaction, and the next process recovers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from tests.files.killed import build, journals, open_fs, recover, transact, tree
from tests.projects import REPOSITORY
from toolkit.errors import SetupError
from toolkit.guard import SandboxFS

BEFORE = {"a.txt": "640 a\n", "d.txt": "644 d\n", "e.txt": "755 e\n", "sub": "755 directory", "sub/e2.txt": "600 E\n"}
AFTER = {
    "a.txt": "640 new a\n",
    "new": "755 directory",
    "new/c.sh": "755 new c\n",
    "new/deep": "755 directory",
    "new/deep/b.txt": "644 new b\n",
    "sub": "755 directory",
    "sub/e2.txt": "755 new e\n",
}
CONFLICT = {**BEFORE, "e.txt": "755 theirs\n"}

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def killed_everywhere(base: Path, way: str, what: str, again: range) -> list[dict[str, Any]]:
    arguments = [str(base), way, what, str(again.start), str(again.stop)]
    command = [sys.executable, "-m", "tests.files.killed", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, umask=0o022, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


WAYS = pytest.mark.parametrize("way", ["renameat2", "without renameat2"])


@WAYS
@pytest.mark.slow
def test_killed_at_any_step_all_of_it_holds_or_none(memory: Path, way: str) -> None:
    found = killed_everywhere(memory / "base", way, "transact", range(1))

    assert len(found) > 40
    halves = [one["left"] for one in found if one["left"] not in (BEFORE, AFTER)]
    assert len(halves) > 20, "it must be possible to be killed half way"
    for one in found:
        assert one["tree"] in (BEFORE, AFTER)
        assert one["journals"] == [] and one["told twice"] == []
        assert [troubles for _, troubles in one["told"]] in ([], [[]])
    assert {outcome for one in found for outcome, _ in one["told"]} == {"finished", "undone"}


@WAYS
@pytest.mark.slow
def test_killed_while_it_recovers_the_next_one_goes_on(memory: Path, way: str, everything: bool) -> None:
    turns = range(1, 40) if everything else range(3, 4)

    for one in killed_everywhere(memory / "base", way, "transact", turns):
        assert one["tree"] in (BEFORE, AFTER)
        assert one["journals"] == [] and one["told twice"] == []


@pytest.mark.parametrize(
    ("way", "what"),
    [
        pytest.param("renameat2", "conflict in the middle", marks=pytest.mark.whole),
        ("renameat2", "conflict in the last instant"),
        ("without renameat2", "conflict in the middle"),
        pytest.param("without renameat2", "conflict in the last instant", marks=pytest.mark.whole),
    ],
)
@pytest.mark.slow
def test_killed_in_a_conflict_the_rest_is_undone_and_their_change_stays(
    memory: Path, way: str, what: str, everything: bool
) -> None:
    turns = range(20) if everything else range(1)

    found = killed_everywhere(memory / "base", way, what, turns)

    for one in found:
        # Killed before the change was made, it may also be finished.
        assert one["tree"] in (BEFORE, CONFLICT, AFTER)
        assert one["tree"] == CONFLICT or "755 theirs\n" not in one["left"].values()
        assert one["journals"] == [] and one["told twice"] == []
    assert sum(one["tree"] == CONFLICT for one in found) > 10


# What somebody did meanwhile

HALF_WAY = """
import sys
from pathlib import Path
from tests.examples import tries
from tests.files.killed import kill, transact
from toolkit.files import steps as step
move = step.move_new
step.move_new = lambda folder, old, *rest: kill() if old == "e.txt" else move(folder, old, *rest)
transact(Path(sys.argv[1]))
"""


@pytest.fixture
def half_way(memory: Path) -> Path:
    """A transaction whose process was killed before its last name changed, and files outside that nobody may touch."""
    base = memory / "base"
    build(base)
    (base / "outside").mkdir()
    (base / "outside/a.txt").write_text("SECRET")
    (base / "outside/e2.txt").write_text("SECRET")
    done = subprocess.run([sys.executable, "-c", HALF_WAY, str(base)], env=ENVIRONMENT, umask=0o022)
    assert done.returncode == -9
    assert tree(base / "ws").items() > {**AFTER, "e.txt": BEFORE["e.txt"]}.items()
    return base


def spare_of(base: Path, content: bytes) -> Path:
    """The file under an unguessable name that has this content."""
    [found] = [path for path in (base / "ws").rglob(".*") if path.is_file() and path.read_bytes() == content]
    return found


def test_what_nobody_touched_is_finished(half_way: Path) -> None:
    [told] = recover(half_way)

    assert (told.outcome, told.troubles) == ("finished", ())
    assert told.paths == ("a.txt", "new/deep/b.txt", "d.txt", "new/c.sh", "sub/e2.txt", "e.txt")
    assert tree(half_way / "ws") == AFTER


def replace(path: Path, text: str = "theirs\n") -> None:
    path.unlink()
    path.write_text(text)


def link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("../outside/a.txt")


def link_folder_out(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("../outside")


def another_folder(path: Path) -> None:
    shutil.copytree(path, path.with_name("copy"))
    path.rename(path.with_name("elsewhere"))
    path.with_name("copy").rename(path)


def edit(path: Path) -> None:
    path.write_text("theirs\n")


@dataclass(frozen=True)
class Meddling:
    """A change by somebody else, the outcome of the transaction, and the names that stay as they are."""

    what: str
    act: Callable[[Path], object]
    outcome: str
    left: set[str]


MEDDLING = [
    Meddling("the last file is another by now", lambda base: replace(base / "ws/e.txt"), "undone", {"e.txt"}),
    Meddling("the last file is gone", lambda base: (base / "ws/e.txt").unlink(), "undone", {"e.txt"}),
    Meddling("the last file is a link by now", lambda base: link_out(base / "ws/e.txt"), "undone", {"e.txt"}),
    Meddling("the last file was edited", lambda base: edit(base / "ws/e.txt"), "undone", {"e.txt"}),
    Meddling("a new file was edited", lambda base: edit(base / "ws/a.txt"), "finished", {"a.txt"}),
    Meddling("a new file was replaced", lambda base: replace(base / "ws/a.txt"), "finished", {"a.txt"}),
    Meddling("a new file is a link by now", lambda base: link_out(base / "ws/a.txt"), "finished", {"a.txt"}),
    Meddling("a new file was removed", lambda base: (base / "ws/new/c.sh").unlink(), "undone", {"new"}),
    Meddling("an old file was edited", lambda base: edit(spare_of(base, b"a\n")), "undone", {"a.txt"}),
    Meddling("an old file was removed", lambda base: spare_of(base, b"a\n").unlink(), "stuck", {"a.txt"}),
    Meddling("a deleted file was removed", lambda base: spare_of(base, b"d\n").unlink(), "undone", {"d.txt"}),
    Meddling("an old file is another by now", lambda base: replace(spare_of(base, b"a\n")), "stuck", {"a.txt"}),
    Meddling("an old file is a link by now", lambda base: link_out(spare_of(base, b"a\n")), "stuck", {"a.txt"}),
    Meddling("a directory is a link by now", lambda base: link_folder_out(base / "ws/sub"), "stuck", {"sub"}),
    Meddling("a directory is another by now", lambda base: another_folder(base / "ws/sub"), "stuck", {"sub"}),
    Meddling("a new directory was moved", lambda base: (base / "ws/new").rename(base / "ws/moved"), "stuck", {"moved"}),
]


@pytest.mark.parametrize("row", MEDDLING, ids=[row.what for row in MEDDLING])
@pytest.mark.slow
def test_what_somebody_did_meanwhile_stays(half_way: Path, row: Meddling) -> None:
    outside = tree(half_way / "outside")
    row.act(half_way)
    links = [path for path in (half_way / "ws").rglob("*") if path.is_symlink()]
    theirs = [text for text in tree(half_way / "ws").values() if "theirs" in text]

    [told] = recover(half_way)

    assert (told.outcome, bool(told.troubles)) == (row.outcome, row.outcome == "stuck")
    assert tree(half_way / "outside") == outside
    assert all(path.is_symlink() for path in links)
    now = tree(half_way / "ws")
    assert [text for text in now.values() if "theirs" in text] == theirs
    rest = {
        path: text
        for path, text in now.items()
        if path.split("/")[0] not in {*row.left, "elsewhere"} and path[0] != "."
    }
    whole = AFTER if row.outcome == "finished" else BEFORE
    assert rest == {path: text for path, text in whole.items() if path.split("/")[0] not in row.left}
    assert recover(half_way) == ()
    assert [name.rpartition(".")[2] for name in journals(half_way)] == (["left"] if row.outcome == "stuck" else [])


def test_an_old_file_that_was_changed_is_brought_back_as_it_is(half_way: Path) -> None:
    edit(spare_of(half_way, b"a\n"))

    recover(half_way)

    assert (half_way / "ws/a.txt").read_text() == "theirs\n"


def test_what_stays_is_told_with_the_place_of_what_was_there_before(half_way: Path) -> None:
    edit(half_way / "ws/a.txt")
    replace(half_way / "ws/e.txt")
    spare = spare_of(half_way, b"a\n").name

    [told] = recover(half_way)

    assert told.troubles == (
        f"'a.txt' was changed concurrently; '{spare}' next to it is the file that was there before",
    )
    assert (half_way / "ws" / spare).read_text() == "a\n"


# Whose it is, and when


def test_a_transaction_of_a_living_process_is_left_alone(memory: Path) -> None:
    base = memory / "base"
    build(base)
    code = HALF_WAY.replace("kill()", "(print('waiting', flush=True), input(), move(folder, old, *rest))")
    command = [sys.executable, "-c", code, str(base)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, umask=0o022, text=True
    ) as living:
        assert living.stdin and living.stdout and living.stdout.readline() == "waiting\n"
        half = tree(base / "ws")

        assert recover(base) == ()

        assert tree(base / "ws") == half
        living.stdin.write("\n")
    assert living.returncode == 0
    assert tree(base / "ws") == AFTER
    assert journals(base) == []


def test_a_transaction_below_other_roots_is_left_alone(half_way: Path) -> None:
    half = tree(half_way / "ws")
    (half_way / "other").mkdir()
    with SandboxFS(half_way / "other", journal=str(half_way / "state/journal")) as fs:
        assert fs.recover() == ()
    assert tree(half_way / "ws") == half

    (half_way / "ws").rename(half_way / "renamed")
    with SandboxFS(half_way / "renamed", journal=str(half_way / "state/journal")) as fs:
        assert [one.outcome for one in fs.recover()] == ["finished"]
    assert tree(half_way / "renamed") == AFTER


def test_nothing_is_done_where_nothing_may_be_written_now(half_way: Path) -> None:
    half = tree(half_way / "ws")
    journal = str(half_way / "state/journal")
    with SandboxFS(half_way / "ws", mode="read-only", journal=journal) as fs:
        assert [(one.outcome, one.troubles) for one in fs.recover()] == [
            ("kept", ("the workspace is read-only: nothing may be written, moved or removed",))
        ]
    with SandboxFS(half_way / "ws", protected=["sub"], journal=journal) as fs:
        assert [one.outcome for one in fs.recover()] == ["kept"]
    assert tree(half_way / "ws") == half

    assert [one.outcome for one in recover(half_way)] == ["finished"]


def test_without_a_journal_directory_there_is_nothing_to_recover(half_way: Path) -> None:
    with SandboxFS(half_way / "ws") as fs:
        assert fs.recover() == ()
    with SandboxFS(half_way / "ws", journal=str(half_way / "none")) as fs:
        assert fs.recover() == ()
    assert not (half_way / "none").exists()


def test_a_journal_directory_is_private_and_out_of_reach(memory: Path) -> None:
    base = memory / "base"
    build(base)
    (base / "ws/link").symlink_to("../state")
    (base / "in").symlink_to("ws")
    for path in ("ws/journal", "ws", "in/x"):
        with pytest.raises(SetupError, match="inside the root"):
            SandboxFS(base / "ws", journal=str(base / path))

    transact(base)

    assert [(base / name).stat().st_mode & 0o777 for name in ("state", "state/journal")] == [0o700, 0o700]
    (base / "state/journal").chmod(0o777)
    with open_fs(base) as fs, pytest.raises(SetupError, match="belong to this user"):
        fs.recover()


NAMES = st.sampled_from(["..", ".", "sub", "../outside", "a.txt", "", "/", "x\0y", "sub/e2.txt", "outside"])
NUMBERS = st.sampled_from(["ROOT", "SUB", "FILE", 0, -1, 2**70])
FOLDERS = st.fixed_dictionaries(
    {"root": st.sampled_from(["", "x"]), "names": st.lists(NAMES, max_size=2), "ino": NUMBERS | st.none()}
    | {"parent": st.none() | st.integers(-2, 2), "spare": NAMES}
)
STEPS = st.fixed_dictionaries(
    {"folder": st.integers(-1, 2), "name": NAMES, "spare": NAMES, "shown": st.text(max_size=3)}
    | {"old": st.none() | st.lists(NUMBERS, min_size=3, max_size=3)}
)
PLANS = st.fixed_dictionaries({"folders": st.lists(FOLDERS, max_size=2), "steps": st.lists(STEPS, max_size=2)})
LATER: st.SearchStrategy[Any] = st.sampled_from(
    [{"done": True}, {"undoing": True}, {"ready": []}, {"ready": [None]}, {"made": "file"}, 7, None]
)


@tries(100)
@given(
    plan=PLANS,
    later=st.lists(LATER, max_size=2),
    whole=st.booleans(),
    cut=st.integers(0, 500),
    tail=st.text(max_size=2),
)
@pytest.mark.slow
def test_no_journal_makes_recovery_fail_or_touch_anything_else(
    tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Any], later: list[Any], whole: bool, cut: int, tail: str
) -> None:
    """A journal is not trusted: truncated, changed and invented lines, and names that lead elsewhere."""
    base = tmp_path_factory.mktemp("base")
    build(base)
    (base / "outside").mkdir()
    (base / "outside/a.txt").write_text("SECRET")
    info = (base / "ws").stat()
    plan |= {"version": 1, "roots": {"": [str(base / "ws"), info.st_dev, info.st_ino]}}
    text = "\n".join(map(json.dumps, [plan, *later])) + "\n"
    for word, path in (("ROOT", "ws"), ("SUB", "ws/sub"), ("FILE", "ws/a.txt")):
        text = text.replace(f'"{word}"', str((base / path).stat().st_ino))
    (base / "state/journal").mkdir(parents=True)
    (base / "state/journal").chmod(0o700)
    (base / "state/journal/x.journal").write_text(text if whole else text[:cut] + tail)
    before = tree(base / "ws"), tree(base / "outside")

    recover(base)

    assert (tree(base / "ws"), tree(base / "outside")) == before
