"""Which files a repository's own configuration leads to, where commands may write: hooks and included files.

A relative ``core.hooksPath`` begins at the work tree, and a repository may have many. So this is asked for each: the one
around a ``.git`` directory, and those whose ``.git`` file leads to a repository, which may be outside the roots.
Limit: files that are included from outside the roots are not searched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from toolkit.guard.review.git_config import MAX_CONFIG
from toolkit.guard.review.git_state import COMMON, CONFIGS, GitState, followed_paths
from toolkit.guard.review.node import Node, NodeReader
from toolkit.guard.review.places import place_of, read_entry, real_path
from toolkit.guard.review.scan import EntryPlace, ScanRoot

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def followed_from_folder(place: EntryPlace, state: GitState, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """For the work tree around a git directory; for one with another name, the directory itself."""
    folder = real_path(place, roots)
    work_tree = os.path.dirname(folder) if place.name.lower() == ".git" else folder
    return _follow(((state.parts[name], folder) for name in CONFIGS), folder, work_tree, roots)


def followed_from_work_tree(work_tree: str, git_folder: str, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """For a work tree whose ``.git`` file leads to ``git_folder``."""
    common = common_folder(git_folder)
    configs = ((_read(common, "config"), common), (_read(git_folder, "config.worktree"), git_folder))
    return _follow(configs, common, work_tree, roots)


def common_folder(git_folder: str) -> str:
    """The git directory with the settings: for an additional work tree, the one of the repository itself."""
    node = _read(git_folder, COMMON)
    if node is None or node.kind != "file" or not node.data.strip() or b"\0" in node.data:
        return git_folder
    return os.path.realpath(os.path.join(git_folder, os.fsdecode(node.data.rstrip(b"\r\n"))))


def _read(folder: str, name: str) -> Node | None:
    try:
        fd = os.open(folder, _FOLDER)
    except OSError:
        return None
    try:
        node = NodeReader(1).read(fd, name, follow=False)
    finally:
        os.close(fd)
    return node if node is not None and len(node.data) <= MAX_CONFIG else None


def _follow(
    configs: Iterable[tuple[Node | None, str]], git_folder: str, work_tree: str, roots: Sequence[ScanRoot]
) -> list[EntryPlace]:
    pending = [path for node, folder in configs for path in followed_paths(node, folder, work_tree)]
    found: list[EntryPlace] = []
    while pending:
        real = os.path.realpath(pending.pop())
        target = place_of(real, roots)
        if target is None or real == git_folder or target in found:
            continue
        found.append(target)
        node = read_entry(target, roots, NodeReader(1))
        if node is not None and node.kind == "file":
            pending += followed_paths(node, os.path.dirname(real), work_tree)
    return found
