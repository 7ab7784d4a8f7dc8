"""One table of paths, replayed over every operation and both resolvers; the numbers are those of the attack list."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import ToolFailed, ToolkitError
from toolkit.guard.fs import SandboxFS
from toolkit.guard.resolve import ResolverName, has_openat2, pick

INSIDE = "inside\n"
SECRET = "SECRET\n"
SHARED = "shared by a hard link\n"

FILES = (
    "top.txt",
    "a/file.txt",
    "a/deep/leaf.txt",
    "[...slug]/page.tsx",
    "..foo",
    "...",
    "name with space ",
    "back\\slash",
)

# Name in the workspace -> target; {base} holds the workspace "ws" and the secrets beside it.
LINKS = {
    "secret-abs": "{base}/secret",
    "secret-rel": "../secret",
    "outside-abs": "{base}/outside",
    "outside-rel": "../outside",
    "a/climb": "../../secret",
    "parent": "..",
    "chain-1": "a/chain-2",
    "a/chain-2": "../chain-3",
    "chain-3": "a/../../secret",
    "good-chain-1": "a/good-chain-2",
    "a/good-chain-2": "../top.txt",
    "file-link": "a/file.txt",
    "dir-link": "a",
    "deep-link": "a/deep",
    "dot-link": ".",
    "a/root-link": "..",
    "round-link": "a/deep/../../top.txt",
    "slash-link": "a/file.txt/",
    "slash-dot-link": "a/file.txt/.",
    "dir-slash-link": "a/",
    "abs-back": "{base}/ws/a/file.txt",
    "loop-self": "loop-self",
    "loop-1": "loop-2",
    "loop-2": "loop-1",
    "dangling-in": "a/none",
    "dangling-out": "../none",
    "proc-root": "/proc/self/root",
    "proc-cwd": "/proc/self/cwd",
    "proc-fd": "/proc/self/fd/0",
    "device-link": "/dev/zero",
}
LONGEST_CHAIN = 40


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def bind_socket(folder: Path, name: str) -> None:
    """A socket file; bound by a relative name, as the full one may be too long for an address."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(name)
    finally:
        os.chdir(before)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world")
    root = base / "ws"
    for secret in ("secret", "outside/secret", "ws-evil/secret"):
        write(base / secret, SECRET)
    for name in FILES:
        write(root / name, INSIDE)
    for name, target in LINKS.items():
        (root / name).symlink_to(target.format(base=base))
    (root / "hop-0").symlink_to("top.txt")
    for number in range(1, LONGEST_CHAIN + 1):
        (root / f"hop-{number}").symlink_to(f"hop-{number - 1}")
    write(base / "shared", SHARED)
    (root / "hard").hardlink_to(base / "shared")
    os.mkfifo(root / "fifo")
    bind_socket(root, "socket")
    return base


@pytest.fixture
def fs(base: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        yield fs


D = "SANDBOX_VIOLATION"
A = "INVALID_TOOL_ARGUMENTS"


@dataclass(frozen=True)
class Row:
    number: int
    text: str
    open_file: str
    stat: str
    open_dir: str
    # What plain open() and listdir() of the same text reach: the secret file, the directory around it, or neither.
    unguarded: str = ""


def refused(number: int, text: str, unguarded: str = "") -> Row:
    return Row(number, text, D, D, D, unguarded)


def malformed(number: int, text: str) -> Row:
    return Row(number, text, A, A, A)


def missing(number: int, text: str) -> Row:
    return Row(number, text, "NOT_FOUND", "NOT_FOUND", "NOT_FOUND")


def broken(number: int, text: str, reason: str) -> Row:
    return Row(number, text, reason, reason, reason)


def file(number: int, text: str) -> Row:
    return Row(number, text, INSIDE, "file", "NOT_DIRECTORY")


def folder(number: int, text: str) -> Row:
    return Row(number, text, "NOT_FILE", "directory", "listed")


def special(number: int, text: str) -> Row:
    return Row(number, text, "NOT_FILE", "other", "NOT_DIRECTORY")


ROWS = [
    refused(1, "../secret", "file"),
    file(1, "a/../top.txt"),
    file(1, "a/deep/../../top.txt"),
    refused(2, "a/../../secret", "file"),
    refused(2, "a/deep/../../../ws/../secret", "file"),
    refused(2, "../ws/top.txt"),
    missing(2, "none/../../secret"),
    refused(3, "{base}/secret", "file"),
    refused(3, "/etc/passwd"),
    file(4, "{base}/ws/a/file.txt"),
    file(4, "/.//{base}/ws//./top.txt"),
    folder(4, "{base}/ws"),
    refused(4, "{base}/ws/../secret", "file"),
    refused(5, "../ws-evil/secret", "file"),
    refused(5, "{base}/ws-evil/secret", "file"),
    refused(5, "{base}/ws-evil", "folder"),
    refused(6, "secret-abs", "file"),
    refused(7, "secret-rel", "file"),
    refused(7, "a/climb", "file"),
    refused(7, "dangling-out"),
    refused(8, "outside-abs/secret", "file"),
    refused(8, "outside-rel/secret", "file"),
    refused(8, "outside-rel", "folder"),
    refused(8, "parent/secret", "file"),
    refused(8, "parent", "folder"),
    refused(9, "chain-1", "file"),
    file(10, "file-link"),
    file(10, "good-chain-1"),
    file(10, "dir-link/file.txt"),
    file(10, "dot-link/dot-link/top.txt"),
    file(10, "a/root-link/top.txt"),
    file(10, "round-link"),
    folder(10, "dir-link"),
    folder(10, "a/root-link"),
    missing(10, "dangling-in"),
    refused(11, "abs-back"),
    file(12, "deep-link/../file.txt"),
    missing(12, "deep-link/../top.txt"),
    refused(12, "outside-abs/../secret", "file"),
    refused(12, "a/root-link/../secret", "file"),
    broken(13, "loop-self", "IO"),
    broken(13, "loop-1", "IO"),
    broken(13, "loop-1/x", "IO"),
    file(13, "hop-39"),
    broken(13, "hop-40", "IO"),
    refused(14, "secret-abs/"),
    refused(14, "secret-rel/"),
    refused(14, "outside-abs/", "folder"),
    refused(14, "outside-rel/.", "folder"),
    folder(14, "dir-link/"),
    folder(14, "dir-slash-link"),
    file(14, "dir-slash-link/file.txt"),
    broken(14, "file-link/", "NOT_DIRECTORY"),
    broken(14, "slash-link", "NOT_DIRECTORY"),
    broken(14, "slash-dot-link", "NOT_DIRECTORY"),
    refused(15, "../", "folder"),
    refused(15, "./../", "folder"),
    refused(15, "a/.//..//..", "folder"),
    refused(15, "..", "folder"),
    folder(15, "a/.."),
    folder(15, "a/deep/../"),
    Row(18, "hard", SHARED, "file", "NOT_DIRECTORY"),
    refused(19, "/proc/self/root/etc/passwd"),
    refused(19, "/proc/self/cwd"),
    refused(19, "/proc/self/fd/0"),
    refused(20, "proc-root/etc/passwd"),
    refused(20, "proc-root{base}/secret", "file"),
    refused(20, "proc-cwd"),
    refused(20, "proc-fd"),
    malformed(23, "top.txt\0"),
    malformed(23, "\0"),
    malformed(24, ""),
    folder(24, "."),
    folder(24, "./"),
    refused(24, "/"),
    malformed(25, "n" * 300),
    malformed(25, "é" * 128),
    malformed(25, "a/" * 4096),
    malformed(25, "d/" * 3000),
    missing(25, "n" * 255),
    missing(25, "none/" * 800 + "x"),
    file(25, "a/../" * 800 + "top.txt"),
    missing(26, ".. /secret"),
    missing(26, "a."),
    missing(26, "top.txt "),
    broken(26, ".../secret", "NOT_DIRECTORY"),
    file(26, "..."),
    file(26, "..foo"),
    file(26, "name with space "),
    file(26, "[...slug]/page.tsx"),
    missing(27, "%2e%2e/secret"),
    missing(27, "\uff0e\uff0e/secret"),
    missing(27, "..\\secret"),
    file(27, "back\\slash"),
    malformed(28, "bad\udc80name"),
    malformed(28, "\ud800"),
    missing(29, "~"),
    missing(29, "~/secret"),
    missing(29, "$HOME"),
    special(31, "fifo"),
    broken(31, "fifo/x", "NOT_DIRECTORY"),
    refused(32, "device-link"),
    special(33, "socket"),
    folder(34, "a"),
    broken(34, "top.txt/", "NOT_DIRECTORY"),
    broken(34, "top.txt/x", "NOT_DIRECTORY"),
    broken(34, "top.txt/..", "NOT_DIRECTORY"),
    broken(34, "top.txt/../top.txt", "NOT_DIRECTORY"),
]


def read(fs: SandboxFS, text: str) -> str:
    with fs.open_file(text) as file:
        return file.read(1000).decode()


def listing(fs: SandboxFS, text: str) -> str:
    with fs.open_dir(text) as folder:
        assert "secret" not in {entry.name for entry in folder.entries()}
        return "listed"


OPERATIONS: Mapping[str, Callable[[SandboxFS, str], str]] = {
    "open_file": read,
    "stat": lambda fs, text: fs.stat(text).kind,
    "open_dir": listing,
}


def outcome(operation: str, fs: SandboxFS, text: str) -> tuple[str, str]:
    """What came of it in one word, and the message if it was refused."""
    try:
        return OPERATIONS[operation](fs, text), ""
    except ToolFailed as error:
        return str(error.reason), error.message
    except ToolkitError as error:
        return error.code, error.message


def name_of(row: Row) -> str:
    return f"{row.number}-{ascii(row.text)[1:30]}"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_operation_answers_as_the_table_says(row: Row, operation: str, fs: SandboxFS, base: Path) -> None:
    expected = getattr(row, operation)
    text = row.text.format(base=base)

    result, message = outcome(operation, fs, text)

    assert result == expected
    assert str(base) not in message.replace(text, "")


@pytest.mark.parametrize("row", [row for row in ROWS if row.unguarded], ids=name_of)
def test_the_same_text_reaches_the_secret_when_nothing_guards_it(row: Row, base: Path) -> None:
    path = os.path.join(base, "ws", row.text.format(base=base))

    if row.unguarded == "file":
        assert Path(path).read_text() == SECRET
    else:
        assert "secret" in os.listdir(path)


PIECES = ["", ".", "..", "...", "a", "deep", "none", "secret", "ws", *FILES, *LINKS, "fifo", "socket", "hop-40"]
PATHS = st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("/".join)


@settings(max_examples=500, deadline=None, database=None)
@given(text=PATHS)
def test_no_text_leaves_the_root_and_both_resolvers_agree(base: Path, text: str) -> None:
    with SandboxFS(base / "ws", resolver="walk") as walk, SandboxFS(base / "ws") as best:
        for operation in OPERATIONS:
            result, message = outcome(operation, walk, text)

            assert result != SECRET
            assert (result, message) == outcome(operation, best, text)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("self/root/etc/passwd", D), ("self/root", D), ("self/cwd", D), ("self/exe", D), ("self/ns/net", "NOT_FOUND")],
)
def test_magic_links_are_not_followed_even_where_proc_is_the_root(
    text: str, expected: str, resolver: ResolverName
) -> None:
    with SandboxFS("/proc", resolver=resolver) as fs:
        assert {outcome(operation, fs, text)[0] for operation in OPERATIONS} == {expected}
        assert fs.stat("self/status").kind == "file"

    assert os.path.exists(os.path.join("/proc", text))


def test_the_kernel_resolver_is_the_default_where_it_exists() -> None:
    assert pick("auto") is pick("openat2" if has_openat2() else "walk")
