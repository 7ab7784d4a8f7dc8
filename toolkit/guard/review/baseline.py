"""How everything was that a command must leave as it was; taken before it starts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolkit.guard.review.followed import common_folder, followed_from_folder, followed_from_work_tree
from toolkit.guard.review.git_state import GitState, read_state
from toolkit.guard.review.node import Node, NodeReader
from toolkit.guard.review.places import pointer_target, read_entry, real_path, real_paths
from toolkit.guard.review.scan import EntryPlace, Identity, Scan, ScanRoot, Seen

_FOLDER_MODE: Final = 0o755

HeldPart: TypeAlias = tuple[Identity, str] | EntryPlace
"""What no command can write: a part of a git directory, all of it if the name is empty; or an entry by its place."""


@dataclass(slots=True)
class Baseline:
    """``git`` by the identity of each git directory, and ``places`` to find one that has another identity by now.

    ``pointers``, and the paths they lead to (``targets``); ``links`` in git directories; ``followed`` are entries that the
    settings in a git directory lead to, ``kept`` these and all that a pattern covers. ``seen`` are the directories that were
    there; ``folders``, for kept entries, has also those that other commands have left since.
    """

    git: dict[Identity, GitState] = field(default_factory=dict)
    places: dict[EntryPlace, Identity] = field(default_factory=dict)
    pointers: dict[EntryPlace, Node | None] = field(default_factory=dict)
    targets: frozenset[str] = frozenset()
    links: dict[EntryPlace, Node | None] = field(default_factory=dict)
    followed: dict[str, list[EntryPlace]] = field(default_factory=dict)
    kept: dict[EntryPlace, Node | None] = field(default_factory=dict)
    unreadable: frozenset[EntryPlace] = frozenset()
    seen: Seen = field(default_factory=Seen)
    folders: Seen = field(default_factory=Seen)

    def add_followed(self, git_folder: str, paths: Sequence[EntryPlace]) -> None:
        """Add files that the configuration in a git directory leads to; those of its own work tree come first."""
        self.followed.setdefault(git_folder, []).extend(paths)

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


def take_baseline(scan: Scan, roots: Sequence[ScanRoot], seen: Seen, code: Collection[EntryPlace] = ()) -> Baseline:
    """Read everything that the scan found; of entries in ``code``, not what they lead to."""
    found = Baseline(places=dict(scan.git_folders), unreadable=frozenset(scan.unreadable), seen=seen, folders=seen)
    reader = NodeReader(within=real_paths(roots))
    targets: set[str] = set()
    for place, identity in scan.git_folders.items():
        state = read_git_folder(place, roots)
        if state is not None:
            found.git[identity] = state
            found.add_followed(real_path(place, roots), followed_from_folder(place, state, roots))
    for place in scan.pointers:
        node = read_entry(place, roots, reader)
        found.pointers[place] = node
        target = pointer_target(place, node, roots)
        if target is not None:
            targets.add(target)
            work_tree = real_path(place.parent, roots)
            found.add_followed(common_folder(target), followed_from_work_tree(work_tree, target, roots))
    for followed in [path for paths in found.followed.values() for path in paths]:
        found.kept[followed] = read_entry(followed, roots, reader)
    found.links = {place: read_entry(place, roots, NodeReader(0)) for place in scan.links}
    for place in scan.kept:
        found.kept[place] = read_entry(place, roots, NodeReader(0) if place in code else reader)
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
