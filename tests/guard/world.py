"""The workspace that is attacked, the secrets next to it, and one row for every path that is tried.

The numbers of the rows are those of the attack list.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

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


def build(base: Path) -> None:
    """The workspace ``ws`` with its files, and the secrets next to it."""
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
    missing(2, "none/top.txt"),
    missing(2, "a/none/file.txt"),
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
    missing(10, "dangling-in/x"),
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


def name_of(row: Row) -> str:
    return f"{row.number}-{ascii(row.text)[1:30]}"
