"""From places to paths and back: what is at a place, where that is, and where a pointer leads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from toolkit.guard.process.program import is_below
from toolkit.guard.review.node import Node, NodeReader
from toolkit.guard.review.scan import EntryPlace, ScanRoot


def real_paths(roots: Sequence[ScanRoot]) -> list[str]:
    """Where the roots are now."""
    return [root.real_path() for root in roots]


def read_entry(place: EntryPlace, roots: Sequence[ScanRoot], reader: NodeReader) -> Node | None:
    """The entry at a place; None if there is none."""
    try:
        folder = roots[place.root].open_folder(place.parent.path)
    except OSError:
        return None
    try:
        return reader.read(folder, place.name)
    finally:
        os.close(folder)


def real_path(place: EntryPlace, roots: Sequence[ScanRoot]) -> str:
    """The path of a place, which has no link in it if it was found by a scan."""
    return os.path.join(roots[place.root].real_path(), place.path) if place.path else roots[place.root].real_path()


def pointer_target(place: EntryPlace, node: Node | None, roots: Sequence[ScanRoot]) -> str | None:
    """The real path that a ``.git`` file, a link or a ``commondir`` leads to; None if it leads nowhere."""
    if node is None:
        return None
    text = node.data
    if node.kind == "file" and place.name.lower() == ".git":
        if not text.startswith(b"gitdir: "):
            return None
        text = text.removeprefix(b"gitdir: ")
    if node.kind not in ("file", "link") or not node.whole or b"\0" in text:
        return None
    return os.path.realpath(
        os.path.join(real_path(place.parent, roots), os.fsdecode(text if node.kind == "link" else text.rstrip(b"\r\n")))
    )


def place_of(real: str, roots: Sequence[ScanRoot]) -> EntryPlace | None:
    """The place of a real path below a root; None for a root itself and for what is elsewhere."""
    for number, root in enumerate(roots):
        top = root.real_path()
        if real != top and is_below(real, top):
            return EntryPlace(number, real[len(top) + 1 :])
    return None
