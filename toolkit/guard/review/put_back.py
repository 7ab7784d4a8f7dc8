"""Puts an entry back as it was, as little of it as possible, and says what was done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from toolkit.guard.review.node import Node, PutBackStore, is_unchanged, replace_file, write_node

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Act: TypeAlias = Literal["added", "changed", "removed"]


class Change(NamedTuple):
    """What a command did to one path, and whether the path is as it was again: if not, it was too large to remember
    and has been taken away."""

    path: str
    act: Act
    undone: bool = True


def put_back(
    folder: int, name: str, before: Node | None, now: Node | None, path: str, store: PutBackStore
) -> Iterator[Change]:
    """Make the entry ``name`` of a directory what it was ``before``; ``path`` is its path for people."""
    if is_unchanged(before, now):
        return
    if before is not None and now is not None and before.kind == now.kind == "directory":
        fd = os.open(name, _FOLDER, dir_fd=folder)
        try:
            for child in sorted({*before.children, *now.children}):
                yield from put_back(
                    fd, child, before.children.get(child), now.children.get(child), f"{path}/{child}", store
                )
            os.fchmod(fd, before.mode)
        finally:
            os.close(fd)
        return
    act: Act = "added" if before is None else "removed" if now is None else "changed"
    yield Change(path, act, undone=before is None or _replace(folder, name, before, now, path, store))
    if before is None:
        store.take(folder, name, path)


def _replace(folder: int, name: str, before: Node, now: Node | None, path: str, store: PutBackStore) -> bool:
    if now is not None and now.kind == before.kind == "link" and now.data == before.data:
        if before.target is None:  # it led nowhere that a command may write, and now it does
            store.take(folder, name, path)
            return True
        before = before.target  # the link is the same, so what it led to takes its place
    if not before.is_whole():
        if now is not None:
            store.take(folder, name, path)
        return False
    if before.kind == "file" and now is not None and now.kind == "file" and now.whole:
        store.copy(now, path)
        replace_file(folder, name, before.data, before.mode)
        return True
    if now is not None:
        store.take(folder, name, path)
    write_node(folder, name, before)
    return True
