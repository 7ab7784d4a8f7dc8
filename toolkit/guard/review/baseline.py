"""How everything was that a command must leave as it was; taken before it starts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolkit.guard.process.program import is_below
from toolkit.guard.review.git_state import CONFIGS, GitState, followed_paths, read_state
from toolkit.guard.review.node import Node, NodeReader
from toolkit.guard.review.scan import EntryPlace, Identity, Scan, ScanRoot, Seen

_FOLDER_MODE: Final = 0o755

HeldPart: TypeAlias = tuple[Identity, str] | EntryPlace
"""What no command can write: a part of a git directory, all of it if the name is empty; or an entry by its place."""


@dataclass(slots=True)
class Baseline:
    """``git`` by the identity of each git directory, and ``places`` to find one that has another identity by now;
    ``pointers`` with the paths they lead to; ``links`` in git directories; ``kept`` entries; the directories that were
    there, and for kept entries also those that other commands have left since."""

    git: dict[Identity, GitState] = field(default_factory=dict)
    places: dict[EntryPlace, Identity] = field(default_factory=dict)
    pointers: dict[EntryPlace, Node | None] = field(default_factory=dict)
    targets: frozenset[str] = frozenset()
    links: dict[EntryPlace, Node | None] = field(default_factory=dict)
    kept: dict[EntryPlace, Node | None] = field(default_factory=dict)
    unreadable: frozenset[EntryPlace] = frozenset()
    seen: Seen = field(default_factory=Seen)
    folders: Seen = field(default_factory=Seen)

    def state_of(self, place: EntryPlace, identity: Identity) -> GitState | None:
        """The earlier state of a git directory, which may have been moved, or replaced in its place."""
        known = self.git.get(identity)
        return known if known is not None else self.git.get(self.places.get(place, (-1, -1)))

    def accept(self, top: EntryPlace, place: EntryPlace, leaf: Node | None) -> None:
        """Count ``leaf`` as what was at ``place`` before; ``top`` is the kept entry that it is, or is below."""
        names = place.path[len(top.path) + 1 :].split("/") if top != place else []
        self.kept[top] = _with_leaf(self.kept.get(top), names, leaf)

    def with_older(self, older: Baseline, held: Collection[HeldPart]) -> Baseline:
        """This one where no running command can have made a change (``held``), the older one everywhere else."""
        git = {}
        for identity, state in older.git.items():
            fresh = self.git.get(identity)
            if fresh is None:
                git[identity] = state
                continue
            parts = {
                name: fresh.parts[name] if is_held((identity, name), node, held) else node
                for name, node in state.parts.items()
            }
            git[identity] = GitState(parts, fresh.todo if (identity, "") in held else state.todo)
        pointers = {
            place: self.pointers.get(place) if is_held(place, node, held) else node
            for place, node in older.pointers.items()
        }
        kept = {
            place: self.kept.get(place) if is_held(place, node, held) else node for place, node in older.kept.items()
        }
        return dataclasses.replace(older, git=git, pointers=pointers, kept=kept)


def _with_leaf(node: Node | None, names: Sequence[str], leaf: Node | None) -> Node | None:
    """The same tree with another file, or without it, at the path that ``names`` are."""
    if not names:
        return leaf
    folder = node if node is not None and node.kind == "directory" else Node("directory", _FOLDER_MODE)
    child = _with_leaf(folder.children.get(names[0]), names[1:], leaf)
    others = {name: one for name, one in folder.children.items() if name != names[0]}
    return dataclasses.replace(folder, children=others if child is None else {**others, names[0]: child})


def is_held(part: HeldPart, node: Node | None, held: Collection[HeldPart]) -> bool:
    """Whether no running command can have changed it: a mount holds it, and its content is nowhere else."""
    return part in held and not (node is not None and node.is_reached_elsewhere())


def take_baseline(scan: Scan, roots: Sequence[ScanRoot], seen: Seen) -> Baseline:
    """Read everything that the scan found."""
    found = Baseline(places=dict(scan.git_folders), unreadable=frozenset(scan.unreadable), seen=seen, folders=seen)
    reader = NodeReader(within=real_paths(roots))
    targets: set[str] = set()
    for place, identity in scan.git_folders.items():
        state = read_git_folder(place, roots)
        if state is not None:
            found.git[identity] = state
            for path in _followed(place, state, roots):
                found.kept[path] = read_entry(path, roots, reader)
    for place in scan.pointers:
        node = read_entry(place, roots, reader)
        found.pointers[place] = node
        target = pointer_target(place, node, roots)
        if target is not None:
            targets.add(target)
    found.links = {place: read_entry(place, roots, NodeReader(0)) for place in scan.links}
    for place in scan.kept:
        found.kept[place] = read_entry(place, roots, reader)
    found.targets = frozenset(targets)
    return found


def read_git_folder(place: EntryPlace, roots: Sequence[ScanRoot]) -> GitState | None:
    """The state of a git directory; None if it is no longer there."""
    try:
        folder = roots[place.root].open_folder(place.path)
    except OSError:
        return None
    try:
        return read_state(folder, real_paths(roots))
    finally:
        os.close(folder)


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


def _followed(place: EntryPlace, state: GitState, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """Hooks and included files that the repository's configuration leads to, where commands may write."""
    folder = real_path(place, roots)
    work_tree = os.path.dirname(folder) if place.name.lower() == ".git" else folder
    pending = [path for name in CONFIGS for path in followed_paths(state.parts[name], folder, work_tree)]
    found: list[EntryPlace] = []
    while pending:
        real = os.path.realpath(pending.pop())
        target = place_of(real, roots)
        if target is None or real == folder or target in found:
            continue
        found.append(target)
        node = read_entry(target, roots, NodeReader(1))
        if node is not None and node.kind == "file":
            pending += followed_paths(node, os.path.dirname(real), work_tree)
    return found


def place_of(real: str, roots: Sequence[ScanRoot]) -> EntryPlace | None:
    """The place of a real path below a root; None for a root itself and for what is elsewhere."""
    for number, root in enumerate(roots):
        top = root.real_path()
        if real != top and is_below(real, top):
            return EntryPlace(number, real[len(top) + 1 :])
    return None
