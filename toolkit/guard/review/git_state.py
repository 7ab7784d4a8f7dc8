"""What in one git directory can make git run something: how it was, and what a command may change of it.

In a repository that was there before the command, everything of this kind stays as it was; only harmless settings of
``config`` may differ. In a new one, only harmless settings and no hooks remain. Instructions of an unfinished rebase that
run programs are taken out if they were not there before.

Limits: programs and scripts in the workspace that the user's own configuration names (a filter, an alias, a script that a
hook calls) are not covered, except for hooks behind ``core.hooksPath`` and files behind ``include.path``.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from toolkit.guard.review.git_config import (
    Setting,
    UnreadableConfig,
    harmless_text,
    is_known_strategy,
    parse_config,
    path_settings,
    risky_settings,
)
from toolkit.guard.review.node import Node, NodeReader, PutBackStore, is_unchanged, replace_file
from toolkit.guard.review.put_back import Change, put_back
from toolkit.guard.review.scan import EntryPlace

CONFIGS: Final = ("config", "config.worktree")
COMMON: Final = "commondir"
FOLDERS: Final = ("hooks", "remotes", "branches")
PARTS: Final = (*CONFIGS, COMMON, *FOLDERS)

_OTHERS_WRITE: Final = 0o022
_IN_MODULES: Final = re.compile(r"(?:^|/)\.git/modules/")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED: Final = ("rebase-merge", "rebase-apply", "sequencer")
_TODO: Final = "git-rebase-todo"
# Instructions that run nothing but git, comments and empty lines; ``exec`` is not among them.
_PLAIN_INSTRUCTION: Final = re.compile(
    rb"[ \t]*(?:#.*|(?:p|pick|r|reword|e|edit|s|squash|f|fixup|d|drop|l|label|t|reset|m|merge|u|update-ref|b|break|noop)"
    rb"(?:[ \t].*)?)?[ \t\r]*"
)


@dataclass(frozen=True, slots=True)
class GitState:
    """The parts of one git directory by name, None where there is none, and the lines of an unfinished rebase."""

    parts: dict[str, Node | None]
    todo: frozenset[bytes]


def read_state(folder: int, within: Collection[str]) -> GitState:
    """The state of the git directory with this descriptor; ``within`` is where commands may write."""
    reader = NodeReader(ignored_ending=".sample", within=within)  # git runs no hook with such a name
    parts = {name: reader.read(folder, name) for name in PARTS}
    return GitState(parts, frozenset(_read_todo(folder).split(b"\n")))


def _is_empty(node: Node | None) -> bool:
    return node is None or (node.kind == "directory" and not node.children)


def _read_todo(folder: int) -> bytes:
    node = NodeReader().read(folder, f"{_UNFINISHED[0]}/{_TODO}", follow=False)
    return node.data if node is not None and node.kind == "file" and node.whole else b""


class StateReview:
    """The review of one git directory, which ``folder`` is a descriptor of.

    ``work_trees`` are the directories whose ``.git`` file leads to it: a submodule names its own in ``core.worktree``.
    """

    def __init__(
        self, folder: int, place: EntryPlace, shown: str, store: PutBackStore, work_trees: Collection[str]
    ) -> None:
        self._folder = folder
        self._shown = shown
        self._store = store
        self._work_trees = work_trees
        self._bare = place.name.lower() != ".git" and _IN_MODULES.search(place.path) is None

    def restore(self, before: GitState, now: GitState, held: Collection[str]) -> Iterator[Change]:
        """Make it what it was, but for harmless settings. ``held`` parts were read-only: what differs is the user's."""
        for name in PARTS:
            old, new = before.parts[name], now.parts[name]
            if name in held:
                continue
            if (name in CONFIGS and self._is_same_risk(old, new)) or (_is_empty(old) and _is_empty(new)):
                continue
            if _is_empty(old) and new is not None and new.kind == "directory":
                old = dataclasses.replace(new, children={})
            yield from put_back(self._folder, name, old, new, f"{self._shown}/{name}", self._store)
        yield from self._stop_programs(before.todo)

    def is_clean(self, now: GitState) -> bool:
        """Whether a new repository has nothing that would have to be removed."""
        configs = (now.parts[name] for name in CONFIGS)
        return all(map(self._is_harmless, configs)) and all(_is_empty(now.parts[name]) for name in FOLDERS)

    def _is_harmless(self, config: Node | None) -> bool:
        """Git would write a message to another name of the file, and so into the settings."""
        return config is None or (config.kind == "file" and config.names == 1 and not self._risk(config))

    def disarm(self) -> Iterator[Change]:
        """Make it a plain directory: without ``HEAD``, git does not take it for a repository."""
        for name in ("HEAD", "head"):
            if NodeReader(0).read(self._folder, name) is not None:
                self._store.take(self._folder, name, f"{self._shown}/{name}")
                yield Change(f"{self._shown}/{name}", "added")

    def clean(self, now: GitState) -> Iterator[Change]:
        """Leave only harmless settings and no hooks in a new repository."""
        for name in CONFIGS:
            node, path = now.parts[name], f"{self._shown}/{name}"
            if node is None or self._is_harmless(node):
                continue
            if node.kind == "file" and node.whole:
                self._store.copy(node, path)
                text = harmless_text(node.data, bare=self._bare, besides=self._own_work_trees(node))
                replace_file(self._folder, name, text, node.mode & ~_OTHERS_WRITE)
            else:
                self._store.take(self._folder, name, path)
            names = [os.fsdecode(setting.name) for setting in self._risk(node)]
            yield Change(f"{path} ({', '.join(names[:5])})" if names else path, "added")
        for name in FOLDERS:
            node, path = now.parts[name], f"{self._shown}/{name}"
            empty = None if node is None or node.kind != "directory" else dataclasses.replace(node, children={})
            yield from put_back(self._folder, name, empty, node, path, self._store)
        yield from self._stop_programs(frozenset())

    def _risk(self, node: Node | None) -> list[Setting]:
        if node is None:
            return []
        content = node.content
        if content.kind != "file" or not content.whole:
            return [Setting(b"", None, b"unreadable", content.data)]
        own = self._own_work_trees(node)
        return [setting for setting in risky_settings(content.data) if setting not in own]

    def _own_work_trees(self, node: Node | None) -> list[Setting]:
        """The settings that name a directory as work tree which belongs to this repository."""
        here = os.readlink(f"/proc/self/fd/{self._folder}")
        return [
            setting
            for setting in work_tree_settings(node)
            if os.path.normpath(os.path.join(here, os.fsdecode(setting.value or b""))) in self._work_trees
        ]

    def _is_same_risk(self, old: Node | None, new: Node | None) -> bool:
        if new is None or new.kind == "other" or new.content.names > (1 if old is None else old.content.names):
            return is_unchanged(old, new)
        if new.kind == "link" and (old is None or old.kind != "link" or old.data != new.data):
            return False
        opened = new.mode & ~(old.mode if old is not None else 0) & _OTHERS_WRITE
        if old is not None and work_tree_settings(old) and not work_tree_settings(new):
            return False
        # A submodule that was moved has another work tree now, and the old one is not its own any more.
        moved = [] if self._own_work_trees(new) == [] else work_tree_settings(old)
        return not opened and [one for one in self._risk(old) if one not in moved] == self._risk(new)

    def _stop_programs(self, known: Collection[bytes]) -> Iterator[Change]:
        """Take what runs programs out of an unfinished rebase or cherry-pick."""
        for name in _UNFINISHED:
            path = f"{self._shown}/{name}"
            node = NodeReader().read(self._folder, name, follow=False)
            if node is None:
                continue
            if node.kind != "directory":
                self._store.take(self._folder, name, path)
                yield Change(path, "added")
                continue
            fd = os.open(name, _FOLDER, dir_fd=self._folder)
            try:
                yield from self._stop_in(fd, node, path, known)
            finally:
                os.close(fd)

    def _stop_in(self, fd: int, node: Node, path: str, known: Collection[bytes]) -> Iterator[Change]:
        for name, is_fine in (("strategy", _is_fine_strategy), ("opts", _are_fine_options)):
            child = node.children.get(name)
            if child is not None and not (child.kind == "file" and child.whole and is_fine(child.data)):
                self._store.take(fd, name, f"{path}/{name}")
                yield Change(f"{path}/{name}", "changed")
        todo = node.children.get(_TODO)
        if todo is None:
            return
        if todo.kind != "file" or not todo.whole:
            self._store.take(fd, _TODO, f"{path}/{_TODO}")
            yield Change(f"{path}/{_TODO}", "added")
            return
        lines = todo.data.split(b"\n")
        kept = [line for line in lines if line in known or _PLAIN_INSTRUCTION.fullmatch(line)]
        if kept != lines:
            self._store.copy(todo, f"{path}/{_TODO}")
            replace_file(fd, _TODO, b"\n".join(kept), todo.mode)
            yield Change(f"{path}/{_TODO}", "changed")


def _is_fine_strategy(data: bytes) -> bool:
    return is_known_strategy(data)


def _are_fine_options(data: bytes) -> bool:
    """Whether the options of a cherry-pick name no program as its strategy."""
    try:
        settings = parse_config(data)
    except UnreadableConfig:
        return False
    return all(is_known_strategy(setting.value or b"") for setting in settings if setting.key == b"strategy")


def work_tree_settings(config: Node | None) -> list[Setting]:
    """The settings of a configuration that name a work tree."""
    if config is None or config.content.kind != "file":
        return []
    return [setting for setting in risky_settings(config.content.data) if setting.name == b"core.worktree"]


def followed_paths(config: Node | None, git_folder: str, work_tree: str) -> Iterator[str]:
    """Paths of hooks and included files that a configuration leads to; ``git_folder`` is where it is."""
    if config is None:
        return
    try:
        settings = parse_config(config.content.data)
    except UnreadableConfig:
        settings = path_settings(config.content.data)
    for setting in settings:
        if setting.value is None:
            continue
        value = os.path.expanduser(os.fsdecode(setting.value))
        if setting.name == b"core.hookspath":
            yield os.path.join(work_tree, value)
        elif setting.section in (b"include", b"includeif") and setting.key == b"path":
            yield os.path.join(git_folder, value)
