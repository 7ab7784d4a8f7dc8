"""The older files of a log: ``audit.jsonl.1`` is the one before ``audit.jsonl``, ``audit.jsonl.2`` the one before that."""

from __future__ import annotations

import os
from contextlib import suppress


def older_file(path: str, number: int) -> str:
    """The name of the file that is so many files older.

    >>> older_file("audit.jsonl", 2)
    'audit.jsonl.2'
    """
    return f"{path}.{number}"


def shift_files(path: str, keep: int | None) -> None:
    """Gives the log the name of the newest older file, and each older file that of the next one.

    Files after the first ``keep`` are removed. A writer that dies in between leaves a gap in the names, which the next one
    fills; no file is overwritten.
    """
    free = 1
    while os.path.lexists(older_file(path, free)):
        free += 1
    for number in reversed(range(1, free)):
        os.rename(older_file(path, number), older_file(path, number + 1))
    os.rename(path, older_file(path, 1))
    if keep is not None:
        for number in range(keep + 1, free + 1):
            with suppress(FileNotFoundError):
                os.unlink(older_file(path, number))


def is_older_file(path: str, identity: tuple[int, int]) -> bool:
    """Whether an open file, known by its device and number, is now an older file of this log."""
    number = 1
    while True:
        try:
            info = os.stat(older_file(path, number), follow_symlinks=False)
        except OSError:
            return False
        if (info.st_dev, info.st_ino) == identity:
            return True
        number += 1
