"""``tree``: what lies below a directory, level by level, so that a big directory leaves room for its neighbours."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from generated import TreeInput, TreeOutput
from generated.models.tree import TreeOutputNode
from toolkit.builtin.files.opening import open_dir
from toolkit.builtin.search.ignore import IgnoreRules
from toolkit.builtin.search.walk import is_hidden, join, open_below
from toolkit.errors import ToolFailed
from toolkit.runtime.context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.handles import DirEntry, Kind, SandboxDir

_KIND_ORDER: Final = {"directory": 0, "file": 1, "symlink": 2, "other": 3}


def run(args: TreeInput, ctx: ToolContext) -> TreeOutput:
    fs = ctx.fs
    with open_dir(fs, args.path) as start:
        rules = IgnoreRules.at(fs, args.path, gitignore=args.respect_gitignore, exclude=args.exclude)
        walk = _Walk(start, args, rules)
        root = walk.finished()
    return TreeOutput(
        root=root.frozen(),
        scanned=walk.scanned,
        total_dirs=walk.counts["directory"],
        total_files=walk.counts["file"],
        total_symlinks=walk.counts["symlink"],
        limit_reached=walk.limit_reached,
    )


@dataclass(slots=True)
class _Node:
    """A node while the tree grows, with what it takes to look into it."""

    name: str
    path: str
    kind: Kind
    steps: tuple[DirEntry, ...]
    rules: IgnoreRules
    """Of the directory that it is in."""
    children: list[_Node] | None = None
    truncated: bool = False

    def frozen(self) -> TreeOutputNode:
        """The node for the output. Goes as deep as the tree, which ``max_depth`` bounds."""
        if self.children is None:
            return TreeOutputNode(name=self.name, path=self.path, kind=self.kind, truncated=self.truncated)
        children = [child.frozen() for child in self.children]
        return TreeOutputNode(
            name=self.name, path=self.path, kind=self.kind, children=children, truncated=self.truncated
        )


class _Walk:
    """One walk, level by level. ``pending`` are the directories to look into, in the order they were found."""

    def __init__(self, start: SandboxDir, args: TreeInput, rules: IgnoreRules) -> None:
        self._start = start
        self._args = args
        self._rules = rules
        self._pending: deque[_Node] = deque()
        self._room = args.max_entries
        self.scanned = 0
        self.counts: Counter[Kind] = Counter()
        self.limit_reached = False

    def finished(self) -> _Node:
        """The root of the tree."""
        path = self._start.path
        root = _Node(path.rpartition("/")[2], path, "directory", (), self._rules)
        self._look_into(root, self._start, self._rules)
        while self._pending:
            node = self._pending.popleft()
            try:
                with open_below(self._start, node.steps) as folder:
                    self._look_into(node, folder, node.rules.enter(folder, node.steps[-1].raw))
            except ToolFailed:
                node.truncated = True  # gone by now, or not ours to look into
        return root

    def _look_into(self, node: _Node, folder: SandboxDir, rules: IgnoreRules) -> None:
        is_too_deep = len(node.steps) >= self._args.max_depth
        if is_too_deep or not self._room:
            # Opened only to tell an empty directory from one that is left out.
            node.truncated = any(True for _ in self._shown(folder.entries(), rules))
            node.children = None if node.truncated else []
            self.limit_reached |= node.truncated and not is_too_deep
            return
        found = nsmallest(self._room + 1, self._shown(self._counted(folder), rules), key=_order)
        node.truncated = len(found) > self._room
        self.limit_reached |= node.truncated
        node.children = [_child(node, entry, rules) for entry in found[: self._room]]
        self._room -= len(node.children)
        self.counts.update(child.kind for child in node.children)
        self._pending.extend(child for child in node.children if child.kind == "directory")

    def _counted(self, folder: SandboxDir) -> Iterator[DirEntry]:
        for entry in folder.entries():
            self.scanned += 1
            yield entry

    def _shown(self, entries: Iterator[DirEntry], rules: IgnoreRules) -> Iterator[DirEntry]:
        for entry in entries:
            if self._args.entry_kind == "directory" and entry.kind != "directory":
                continue
            if (self._args.include_hidden or not is_hidden(entry)) and not rules.ignored(entry):
                yield entry


def _order(entry: DirEntry) -> tuple[int, str, str]:
    return _KIND_ORDER[entry.kind], entry.name, entry.raw


def _child(node: _Node, entry: DirEntry, rules: IgnoreRules) -> _Node:
    return _Node(entry.name, join(node.path, entry.name), entry.kind, (*node.steps, entry), rules)


def text(output: TreeOutput) -> str:
    return "\n".join([*_rows(output.root, ""), _summary(output)])


def _rows(node: TreeOutputNode, indent: str) -> Iterator[str]:
    mark = {"directory": "/", "symlink": " -> link"}.get(node.kind, "")
    unopened = " …" if node.truncated and node.children is None else ""
    yield f"{indent}{node.name}{mark}{unopened}"
    for child in node.children or ():
        yield from _rows(child, indent + "  ")
    if node.truncated and node.children is not None:
        yield f"{indent}  …"


def _summary(output: TreeOutput) -> str:
    words = ", ".join(
        (
            _count(output.total_dirs, "directory", "directories"),
            _count(output.total_files, "file", "files"),
            *([_count(output.total_symlinks, "link", "links")] if output.total_symlinks else []),
        )
    )
    if output.limit_reached:
        return f"[{words}; … marks what max_entries cut off: raise it, or start further down]"
    if _is_cut(output.root):
        return f"[{words}; … marks deeper levels: raise max_depth, or start there]"
    return f"[{words}]"


def _is_cut(node: TreeOutputNode) -> bool:
    return node.truncated or any(map(_is_cut, node.children or ()))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
