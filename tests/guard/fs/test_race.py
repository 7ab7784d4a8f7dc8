"""A second process exchanges two names without pause while this one reads and writes through them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.examples import repeats
from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard import ResolverName, SandboxFS

TIMES = repeats(10_000)
INSIDE = b"inside"
SECRET = b"SECRET"

# Ends when its input does, so that it never outlives the test.
SWAPPER = """
import ctypes, os, select, sys
exchange, here = 2, -100
first, second = map(os.fsencode, sys.argv[1:])
renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
if renameat2(here, first, here, second, exchange):
    sys.exit(os.strerror(ctypes.get_errno()))
print("swapping", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        renameat2(here, first, here, second, exchange)
"""


@contextmanager
def swapping(first: Path, second: Path) -> Iterator[None]:
    command = [sys.executable, "-c", SWAPPER, str(first), str(second)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as swapper:
        assert swapper.stdin and swapper.stdout and swapper.stderr
        if not swapper.stdout.readline():
            pytest.skip(f"two names cannot be exchanged here: {swapper.stderr.read().decode().splitlines()[-1]}")
        yield
        assert swapper.poll() is None, "the swapper ended too early"
        swapper.stdin.close()


def until_met(seen: Collection[object], outcomes: int = 2) -> Iterator[int]:
    """Turn after turn: ``TIMES``, and on until so many outcomes were met, however the processes are scheduled."""
    for turn in range(100 * TIMES):
        if turn >= TIMES and len(seen) >= outcomes:
            return
        yield turn


def read_again_and_again(root: Path, texts: list[str], resolver: ResolverName, *, outcomes: int = 2) -> Counter[bytes]:
    seen: Counter[bytes] = Counter()
    with SandboxFS(root, resolver=resolver) as fs:
        for turn in until_met(seen, outcomes):
            try:
                with fs.open_file(texts[turn % len(texts)]) as file:
                    seen[file.read(100)] += 1
            except (SandboxViolation, ToolFailed):
                seen[b"refused"] += 1
    return seen


@pytest.mark.slow
def test_a_directory_swapped_with_a_link_never_leaks(tmp_path: Path, resolver: ResolverName) -> None:
    root = tmp_path / "ws"
    for folder, content in ((root / "dir", INSIDE), (tmp_path / "outside", SECRET)):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(content)
    (root / "link").symlink_to("../outside")
    assert (root / "link/file").read_bytes() == SECRET

    with swapping(root / "dir", root / "link"):
        seen = read_again_and_again(root, ["dir/file", "dir/../dir/file", "link/file"], resolver)

    assert set(seen) == {INSIDE, b"refused"}, seen


@pytest.mark.slow
def test_a_directory_moved_out_under_dot_dot_never_leaks(tmp_path: Path, resolver: ResolverName) -> None:
    root = tmp_path / "ws"
    for folder in (root / "a/moving", tmp_path / "x/moving"):
        folder.mkdir(parents=True)
    (root / "file").write_bytes(INSIDE)
    (tmp_path / "file").write_bytes(SECRET)
    (tmp_path / "a").symlink_to("x")  # what got out goes on outside
    assert (tmp_path / "x/moving/../../file").read_bytes() == SECRET
    # Each repetition is another chance to get out.
    texts = ["a/moving/../../file", "a/moving/../../" * 64 + "file"]

    with swapping(root / "a/moving", tmp_path / "x/moving"):
        # Both resolvers nearly always answer: waiting for a refusal would take a hundred times as many turns.
        seen = read_again_and_again(root, texts, resolver, outcomes=1)

    assert seen[INSIDE] and set(seen) <= {INSIDE, b"refused"}, seen


def write_again_and_again(root: Path, texts: list[str], resolver: ResolverName) -> Counter[str]:
    seen: Counter[str] = Counter()
    with SandboxFS(root, resolver=resolver) as fs:
        for turn in until_met(seen):
            text = texts[turn % len(texts)]
            try:
                if turn % 5:
                    fs.write_file(text, INSIDE)
                elif turn % 2:
                    fs.remove_file(text)
                else:
                    fs.write_file(f"{text}-new/deep", INSIDE)
                seen["done"] += 1
            except (SandboxViolation, ToolFailed):
                seen["refused"] += 1
    return seen


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Each path with its time and content; the time of a directory also shows files that were made and removed."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (top, *top.rglob("*"))
    }


@pytest.mark.slow
def test_a_directory_swapped_with_a_link_is_never_written_through(memory: Path, resolver: ResolverName) -> None:
    root, outside = memory / "ws", memory / "outside"
    for folder in (root / "dir", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(SECRET)
    (root / "link").symlink_to("../outside")
    before = tree(outside)

    with swapping(root / "dir", root / "link"):
        seen = write_again_and_again(root, ["dir/file", "dir/../dir/file", "link/file"], resolver)

    assert seen["done"] and seen["refused"], seen
    assert tree(outside) == before
    for name in ("dir", "link"):  # one of them is the link by now
        (root / name / "file").write_bytes(INSIDE)
    assert tree(outside) != before


def test_a_file_swapped_with_a_link_is_never_written_through(memory: Path, resolver: ResolverName) -> None:
    root, outside = memory / "ws", memory / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    (root / "file").write_bytes(INSIDE)
    (root / "link").symlink_to("../outside/file")
    before = tree(outside)

    with swapping(root / "file", root / "link"), SandboxFS(root, resolver=resolver) as fs:
        for turn in range(TIMES):
            try:
                fs.write_file(("file", "link")[turn % 2], INSIDE)
            except (SandboxViolation, ToolFailed):
                continue
            if not (root / "link").is_symlink() and not (root / "file").is_symlink():
                break  # the link itself was replaced: there is nothing left to follow

    assert tree(outside) == before


@pytest.mark.slow
def test_a_directory_swapped_with_a_protected_one_is_never_written(memory: Path, resolver: ResolverName) -> None:
    """The link leads to a protected directory inside, so that only the check of the opened directory protects it."""
    root = memory / "ws"
    for folder in ("dir", ".git"):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").write_bytes(SECRET)
    (root / "link").symlink_to(".git")
    before = tree(root / ".git")

    with swapping(root / "dir", root / "link"):
        seen = write_again_and_again(root, ["dir/file", "link/file"], resolver)

    assert seen["done"] and seen["refused"], seen
    assert tree(root / ".git") == before


@pytest.mark.slow
def test_a_denied_directory_swapped_with_another_is_never_read(memory: Path, resolver: ResolverName) -> None:
    root = memory / "ws"
    for folder, content in (("dir", INSIDE), ("denied", SECRET)):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").write_bytes(content)
    (root / "link").symlink_to("denied")
    seen: Counter[bytes] = Counter()

    with swapping(root / "dir", root / "link"), SandboxFS(root, resolver=resolver).with_deny(["denied"]) as fs:
        for turn in until_met(seen):
            try:
                with fs.open_file(("dir/file", "link/file")[turn % 2]) as file:
                    seen[file.read(100)] += 1
            except (SandboxViolation, ToolFailed):
                seen[b"refused"] += 1

    assert set(seen) == {INSIDE, b"refused"}, seen
