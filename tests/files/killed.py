"""Run as a program: transactions in children that end at a chosen step, and what they leave.

Every system call that changes something is a step. A child is killed before its n-th step, so that all numbers together
stop it between any two steps. The directories are new each time; one JSON line reports each outcome.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolkit.errors import ToolFailed
from toolkit.guard import Drop, FileChange, Put, Recovery, SandboxFS
from toolkit.guard.files import write as rename

FILES = {"a.txt": (b"a\n", 0o640), "d.txt": (b"d\n", 0o644), "e.txt": (b"e\n", 0o755), "sub/e2.txt": (b"E\n", 0o600)}
CHANGING = ("rename", "link", "unlink", "mkdir", "rmdir", "write", "fsync", "fchmod", "ftruncate")


def build(base: Path) -> None:
    for name, (data, mode) in FILES.items():
        file = base / "ws" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)


def open_fs(base: Path) -> SandboxFS:
    return SandboxFS(base / "ws", journal=str(base / "state/journal"))


def changes(fs: SandboxFS) -> list[FileChange]:
    """Five files: one updated, two added in new directories, one deleted, one moved onto another."""
    seen = {name: fs.fingerprint(name) for name in FILES}
    return [
        Put("a.txt", b"new a\n", seen["a.txt"]),
        Put("new/deep/b.txt", b"new b\n", None),
        Drop("d.txt", seen["d.txt"]),
        Put("new/c.sh", b"new c\n", None, executable=True),
        Put("sub/e2.txt", b"new e\n", seen["sub/e2.txt"], mode=0o755),
        Drop("e.txt", seen["e.txt"]),
    ]


def transact(base: Path) -> None:
    with open_fs(base) as fs:
        fs.transaction(changes(fs))


def conflict(base: Path, moment: str) -> None:
    """The last file of the transaction is changed while names are already changing, so that everything must be undone."""
    step, path = sys.modules["toolkit.files.steps"], base / "ws/e.txt"

    def meanwhile(act: Callable[..., None]) -> Callable[..., None]:
        def acting(*arguments: Any) -> None:
            if moment in arguments and path.exists() and path.read_bytes() == b"e\n":
                path.write_bytes(b"theirs\n")
            act(*arguments)

        return acting

    for name in ("exchange", "move_new"):
        setattr(step, name, meanwhile(getattr(step, name)))
    try:
        transact(base)
    except ToolFailed as failure:
        assert failure.reason == "CONFLICT", failure
    else:
        raise AssertionError("no conflict")


def recover(base: Path) -> tuple[Recovery, ...]:
    with open_fs(base) as fs:
        return fs.recover()


ACTS: dict[str, Callable[[Path], object]] = {
    "transact": transact,
    "conflict in the middle": lambda base: conflict(base, "a.txt"),
    "conflict in the last instant": lambda base: conflict(base, "e.txt"),
}


def tree(top: Path) -> dict[str, str]:
    """Every name with its mode, and its content where it has one."""
    return {
        path.relative_to(top).as_posix(): f"{stat.S_IMODE(path.lstat().st_mode):o} "
        + (path.read_text() if path.is_file() else "directory")
        for path in sorted(top.rglob("*"))
    }


def journals(base: Path) -> list[str]:
    return [file.name for file in (base / "state").rglob("*") if file.is_file()]


def at_step(number: int, then: Callable[[], object]) -> None:
    """From now on ``then`` is called before the n-th step of this process."""
    steps = 0

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == number:
                then()
            return act(*arguments, **options)

        return step

    for name in CHANGING:
        setattr(os, name, counted(getattr(os, name)))
    really_open = os.open
    counted_open = counted(really_open)

    def open_(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        act = counted_open if flags & os.O_CREAT else really_open
        opened: int = act(path, flags, *arguments, **options)
        return opened

    os.open = open_
    if rename._renameat2 is not None:
        rename._renameat2 = counted(rename._renameat2)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(number: int, act: Callable[[Path], object], base: Path) -> bool:
    """Whether the child was killed; it was not if it needs fewer steps than that."""
    child = os.fork()
    if child == 0:
        at_step(number, kill)
        act(base)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed"
    return os.WIFSIGNALED(status)


def outcomes(base: Path, act: Callable[[Path], object], again: int) -> Iterator[dict[str, object]]:
    """One for every step the act can be killed at; ``again`` kills the recovery of each at that step, too."""
    for number in range(1, 1000):
        shutil.rmtree(base, ignore_errors=True)
        build(base)
        was_killed = killed_at(number, act, base)
        left = tree(base / "ws")
        if again:
            killed_at(again, recover, base)
        told = [(one.outcome, one.troubles) for one in recover(base)]
        told_twice = [one.outcome for one in recover(base)]
        found = {"tree": tree(base / "ws"), "journals": journals(base), "told": told, "told twice": told_twice}
        yield {"left": left, **found}
        if not was_killed:
            return


if __name__ == "__main__":
    _, place, way, what, first, last = sys.argv
    if way == "without renameat2":
        rename._renameat2 = None
    for turn in range(int(first), int(last)):
        for outcome in outcomes(Path(place), ACTS[what], turn):
            sys.stdout.write(json.dumps(outcome) + "\n")
