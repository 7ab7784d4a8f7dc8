"""A private HOME for one command, for tiers without mounts: a directory of its own that is removed afterwards. Made in
the agent's process.

Promise: no other user can read it, and what a command leaves there (trees of any depth, directories without any
permission, links to other places) is removed without following a link. Limit: what cannot be removed stays, and all of
it stays when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_ROUNDS: Final = 100_000  # one for each level; a limit in case new ones keep being made


@contextlib.contextmanager
def private_home(state_dir: str | None) -> Iterator[str]:
    """The real path of a new directory below ``state_dir``, which is made if it is missing."""
    if state_dir is not None:
        os.makedirs(state_dir, 0o700, exist_ok=True)
    path = os.path.realpath(tempfile.mkdtemp(prefix="home-", dir=state_dir))
    owner = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == owner:  # in a fork, the command of the parent may still use it
            with contextlib.suppress(OSError):
                remove_tree(path)


def remove_tree(path: str) -> None:
    """Remove a directory with all below it, level by level: children are moved to its top, so that depth needs neither
    long names nor stack."""
    top = os.open(path, _FOLDER)
    try:
        for _ in range(_MAX_ROUNDS):
            names = os.listdir(top)
            if not names:
                break
            for name in names:
                if not _remove_file(name, top):
                    _lift_contents(name, top)
    finally:
        os.close(top)
    os.rmdir(path)


def _lift_contents(name: str, top: int) -> None:
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for child in os.listdir(folder):
            if not _remove_file(child, folder):
                os.rename(child, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _remove_file(name: str, folder: int) -> bool:
    """Remove what is not a directory; make a directory accessible instead, and return False."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=folder)  # not a link that has taken its place
        try:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        finally:
            os.close(handle)
        return False
    return True
