"""The table of paths again, for everything that changes files; the numbers are those of the attack list."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from tests.guard.world import FILES, INSIDE, LINKS, ROWS, SECRET, A, D, Row, build, name_of
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.guard import ResolverName, SandboxFS

NEW = b"new content\n"
MOVED = "[...slug]/page.tsx"

DONE = "done"
NOT_DIRECTORY, NOT_FILE, NOT_FOUND, EXISTS = "NOT_DIRECTORY", "NOT_FILE", "NOT_FOUND", "ALREADY_EXISTS"


def made(fs: SandboxFS, text: str) -> str:
    return DONE if fs.make_dir(text) else "there"


def act(operation: Callable[..., object], *arguments: object, **options: object) -> str:
    operation(*arguments, **options)
    return DONE


OPERATIONS: Mapping[str, Callable[[SandboxFS, str], str]] = {
    "write": lambda fs, text: act(fs.write_file, text, NEW),
    "create": lambda fs, text: act(fs.write_file, text, NEW, create_only=True),
    "make_dir": made,
    "remove_file": lambda fs, text: act(fs.remove_file, text),
    "remove_dir": lambda fs, text: act(fs.remove_dir, text),
    "rename": lambda fs, text: act(fs.rename, text, "moved-here"),
    "rename_to": lambda fs, text: act(fs.rename, MOVED, text),
    "rename_over": lambda fs, text: act(fs.rename, MOVED, text, replace=True),
}

# What a path is -> the answers of the operations above, in their order.
ANSWERS: dict[str, tuple[str, ...]] = {
    "outside": (D,) * 8,
    "malformed": (A,) * 8,
    "nowhere": (NOT_FOUND,) * 8,
    "below a file": (NOT_DIRECTORY,) * 8,
    "below a loop": ("IO",) * 8,
    # Removing and moving mean the link itself, which is inside.
    "link to outside": (D, D, D, DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
    "link to outside, slash": (D, D, D, NOT_DIRECTORY, NOT_DIRECTORY, NOT_DIRECTORY, NOT_DIRECTORY, NOT_DIRECTORY),
    "new": (DONE, DONE, DONE, NOT_FOUND, NOT_FOUND, NOT_FOUND, DONE, DONE),
    "new, parents too": (DONE, DONE, DONE, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND),
    "below a link to new": (*(NOT_DIRECTORY,) * 3, *(NOT_FOUND,) * 5),
    "link to new": (DONE, DONE, DONE, DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
    "file": (DONE, EXISTS, EXISTS, DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
    "file, slash": (NOT_DIRECTORY, NOT_DIRECTORY, EXISTS, *(NOT_DIRECTORY,) * 5),
    "link with slash": (NOT_DIRECTORY, NOT_DIRECTORY, EXISTS, DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
    "directory": (NOT_FILE, NOT_FILE, "there", NOT_FILE, "IO", DONE, EXISTS, NOT_FILE),
    "link to directory": (NOT_FILE, NOT_FILE, "there", DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
    "link to directory, slash": (NOT_FILE, NOT_FILE, "there", *(NOT_DIRECTORY,) * 5),
    "directory without name": (NOT_FILE, NOT_FILE, "there", D, D, D, D, D),
    "special": (NOT_FILE, NOT_FILE, EXISTS, DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
    "loop": ("IO", "IO", "IO", DONE, NOT_DIRECTORY, DONE, EXISTS, DONE),
}

# Most rows tell by what reading says of them; these say it in more detail.
KINDS: dict[str, list[str]] = {
    "link to outside": [
        "secret-abs", "secret-rel", "a/climb", "dangling-out", "outside-rel", "parent", "chain-1", "abs-back",
        "proc-cwd", "proc-fd", "device-link",
    ],
    "link to outside, slash": ["secret-abs/", "secret-rel/", "outside-abs/", "outside-rel/."],
    "new": ["deep-link/../top.txt", "n" * 255, "a.", "top.txt ", "..\\secret", "~", "$HOME"],
    "new, parents too": [".. /secret", "%2e%2e/secret", "\uff0e\uff0e/secret", "~/secret", "none/" * 800 + "x", "none/top.txt", "a/none/file.txt"],
    "nowhere": ["none/../../secret"],
    "link to new": ["dangling-in"],
    "below a link to new": ["dangling-in/x"],
    "file, slash": ["top.txt/", "file-link/"],
    "link with slash": ["slash-link", "slash-dot-link"],
    "directory": ["a"],
    "link to directory": ["dir-link", "a/root-link", "dir-slash-link"],
    "link to directory, slash": ["dir-link/"],
    "directory without name": ["{base}/ws", "a/..", "a/deep/../", ".", "./"],
    "loop": ["loop-self", "loop-1", "hop-40"],
    "below a loop": ["loop-1/x"],
}  # fmt: skip
BY_READING = {D: "outside", A: "malformed", NOT_DIRECTORY: "below a file", INSIDE: "file"}
KIND_OF = {text: kind for kind, texts in KINDS.items() for text in texts}


def kind_of(row: Row) -> str:
    if row.text in KIND_OF:
        return KIND_OF[row.text]
    return "special" if row.stat == "other" else "file" if row.stat == "file" else BY_READING[row.open_file]


def expected(row: Row, operation: str) -> str:
    return ANSWERS[kind_of(row)][list(OPERATIONS).index(operation)]


def outcome(operation: str, fs: SandboxFS, text: str) -> tuple[str, str]:
    try:
        return OPERATIONS[operation](fs, text), ""
    except ToolFailed as error:
        return str(error.reason), error.message
    except ToolkitError as error:
        return error.code, error.message


def facts(path: str) -> tuple[object, ...]:
    info = os.lstat(path)
    held: object = None
    if stat.S_ISLNK(info.st_mode):
        held = os.readlink(path)
    elif stat.S_ISREG(info.st_mode):
        with open(path, "rb") as file:
            held = file.read()
    # The time of a directory tells even of what came and went.
    return info.st_mode, info.st_ino, info.st_mtime_ns, held


def everything(top: Path, without: str = "") -> dict[str, tuple[object, ...]]:
    seen = {str(top): facts(str(top))}
    for folder, folders, files in os.walk(top):
        if without in folders and folder == str(top):
            folders.remove(without)
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            seen[path] = facts(path)
    return seen


@pytest.fixture
def base(memory: Path) -> Path:
    build(memory)
    return memory


@pytest.mark.each("row", "operation")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("row", ROWS, ids=name_of)
@pytest.mark.slow
def test_every_change_answers_as_the_table_says_and_stays_inside(
    row: Row, operation: str, base: Path, resolver: ResolverName
) -> None:
    text = row.text.format(base=base)
    outside, inside = everything(base, without="ws"), everything(base / "ws")

    with SandboxFS(base / "ws", resolver=resolver) as fs:
        result, message = outcome(operation, fs, text)
        assert result == expected(row, operation)
        if result == DONE and operation in ("write", "create"):
            with fs.open_file(text) as file:
                assert file.read(100) == NEW

    assert everything(base, without="ws") == outside
    if result != DONE:
        assert everything(base / "ws") == inside
    assert str(base) not in message.replace(text, "")


@pytest.mark.parametrize("row", [row for row in ROWS if row.unguarded], ids=name_of)
def test_the_same_text_changes_what_is_outside_when_nothing_guards_it(row: Row, base: Path) -> None:
    path = os.path.join(base, "ws", row.text.format(base=base))
    outside = everything(base, without="ws")

    if row.unguarded == "file":
        Path(path).write_bytes(NEW)
    else:
        Path(path, "planted").write_bytes(NEW)

    assert everything(base, without="ws") != outside


@pytest.mark.parametrize("text", ["dangling-out", "outside-rel/new", "outside-abs/new/deep"])
def test_what_does_not_exist_outside_is_not_made(text: str, base: Path, resolver: ResolverName) -> None:
    outside = everything(base, without="ws")

    with SandboxFS(base / "ws", resolver=resolver) as fs:
        for operation in ("write", "create", "make_dir"):
            assert outcome(operation, fs, text)[0] == D
            assert everything(base, without="ws") == outside

    os.makedirs(os.path.join(base, "ws", os.path.dirname(text)), exist_ok=True)
    Path(base, "ws", text).write_bytes(NEW)
    assert everything(base, without="ws") != outside


def test_a_link_planted_where_a_directory_is_about_to_be_made_is_not_followed(
    base: Path, resolver: ResolverName, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def meanwhile(name: str, *, dir_fd: int) -> None:
        os.symlink("../outside", name, dir_fd=dir_fd)
        mkdir(name, dir_fd=dir_fd)

    outside = everything(base, without="ws")
    monkeypatch.setattr(os, "mkdir", meanwhile)
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        for text in ("one/file", "two/deep/file"):
            assert outcome("write", fs, text)[0] == NOT_DIRECTORY
        assert outcome("make_dir", fs, "three/deep")[0] == NOT_DIRECTORY

    assert everything(base, without="ws") == outside
    assert (base / "ws/one/secret").read_text() == SECRET


def test_a_link_that_stays_inside_is_written_through_and_stays_a_link(base: Path, resolver: ResolverName) -> None:
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        written = fs.write_file("good-chain-1", NEW)

    assert (written.path, written.created) == ("good-chain-1", False)
    assert (base / "ws/top.txt").read_bytes() == NEW
    assert (base / "ws/good-chain-1").is_symlink() and (base / "ws/a/good-chain-2").is_symlink()


def test_the_foreign_side_of_a_hard_link_keeps_its_content(base: Path, resolver: ResolverName) -> None:
    shared = (base / "shared").read_bytes()

    with SandboxFS(base / "ws", resolver=resolver) as fs:
        fs.write_file("hard", NEW)

    assert (base / "shared").read_bytes() == shared
    assert (base / "ws/hard").read_bytes() == NEW
    (base / "ws/hard").unlink()
    (base / "ws/hard").hardlink_to(base / "shared")
    (base / "ws/hard").write_bytes(NEW)  # unguarded, in place
    assert (base / "shared").read_bytes() == NEW


PIECES = [
    "",
    ".",
    "..",
    "...",
    "a",
    "deep",
    "none",
    "secret",
    "ws",
    "top.txt",
    *FILES,
    *LINKS,
    "fifo",
    ".git",
    "hop-40",
]
PATHS = st.text(max_size=8) | st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("/".join)


@tries(150, database=None)
@given(steps=st.lists(st.tuples(st.sampled_from(list(OPERATIONS)), PATHS), min_size=1, max_size=6))
@pytest.mark.slow
def test_no_texts_change_anything_outside_and_both_resolvers_agree(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    answers: list[list[tuple[str, str]]] = []
    for resolver in ("walk", "auto"):
        base = tmp_path_factory.mktemp("world")
        build(base)
        outside = everything(base, without="ws")
        with SandboxFS(base / "ws", resolver=resolver) as fs:
            answers.append([outcome(operation, fs, text) for operation, text in steps])
        assert everything(base, without="ws") == outside
        assert (base / "secret").read_text() == SECRET
        shutil.rmtree(base)
    assert answers[0] == answers[1]
