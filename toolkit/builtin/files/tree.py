"""``tree``: the entries below a directory, level by level, so that one big directory does not use up the limit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from toolkit.builtin.files.whole_file import open_dir
from toolkit.builtin.search.ignored import DIRECTORY, IgnoreRules
from toolkit.builtin.search.walk import Steps, denied_note, keep_names, open_below
from toolkit.builtin.text.diff import format_count
from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.generated import TreeInput, TreeOutput
from toolkit.generated.models.tree import TreeOutputNode
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.files.handles import Kind, SandboxDir


def run(args: TreeInput, ctx: ToolContext) -> TreeOutput:
    fs = ctx.fs
    with open_dir(fs, args.path) as start:
        rules = IgnoreRules.at(fs, args.path, gitignore=args.respect_gitignore, exclude=args.exclude)
        walk = _TreeWalk(start, args, rules)
        root = walk.build()
    return TreeOutput(
        root=root.to_output(),
        scanned=walk.scanned,
        total_dirs=walk.counts["directory"],
        total_files=walk.counts["file"],
        total_symlinks=walk.counts["symlink"],
        limit_reached=walk.limit_reached,
        hidden=walk.hidden,
    )


@dataclass(slots=True)
class _TreeNode:
    """A node while the tree is built, with what is needed to open it."""

    path: str
    kind: Kind
    steps: Steps
    rules: IgnoreRules
    """Those of the directory that contains it; for the root, its own."""
    children: list[_TreeNode] | None = None
    truncated: bool = False

    def to_output(self) -> TreeOutputNode:
        """The node for the output. Recursion is bounded by ``max_depth``."""
        name = self.path.rpartition("/")[2]
        if self.children is None:
            return TreeOutputNode(name=name, path=self.path, kind=self.kind, truncated=self.truncated)
        children = [child.to_output() for child in self.children]
        return TreeOutputNode(name=name, path=self.path, kind=self.kind, children=children, truncated=self.truncated)


class _TreeWalk:
    """One walk, level by level. ``_pending`` are the directories to open, in the order they were found."""

    def __init__(self, start: SandboxDir, args: TreeInput, rules: IgnoreRules) -> None:
        self._start = start
        self._args = args
        self._rules = rules
        self._pending: deque[_TreeNode] = deque()
        self._room = args.max_entries
        self.scanned = 0
        self.hidden = 0
        self.counts: Counter[Kind] = Counter()
        self.limit_reached = False

    def build(self) -> _TreeNode:
        """Walk, and return the root of the tree."""
        root = _TreeNode(self._start.path, "directory", (), self._rules)
        self._read_directory(root, self._start)
        while self._pending:
            node = self._pending.popleft()
            try:
                with open_below(self._start, node.steps) as folder:
                    self._read_directory(node, folder)
            except (ToolFailed, SandboxViolation):
                node.truncated = True  # deleted concurrently, or not readable
        return root

    def _read_directory(self, node: _TreeNode, folder: SandboxDir) -> None:
        names = folder.names()
        self.hidden += folder.hidden
        scanned = sum(map(len, names))
        rules = node.rules.enter(folder, node.steps, names) if node.steps else node.rules
        keep = partial(keep_names, steps=node.steps, rules=rules, include_hidden=self._args.include_hidden)
        kept: dict[Kind, list[str]] = {"directory": keep(names.directories, mark=DIRECTORY)}
        if self._args.entry_kind == "all":
            others: dict[Kind, list[str]] = {"file": names.files, "symlink": names.symlinks, "other": names.others}
            kept |= {kind: keep(some, mark=b"") for kind, some in others.items()}
        is_too_deep = len(node.steps) >= self._args.max_depth
        if is_too_deep or not self._room:
            # It was opened only to see whether it is empty.
            node.truncated = any(kept.values())
            node.children = None if node.truncated else []
            self.limit_reached |= node.truncated and not is_too_deep
            return
        self.scanned += scanned
        found = [
            (kind, *one) for kind, some in kept.items() for one in sorted((folder.path_of(raw), raw) for raw in some)
        ]
        node.truncated = len(found) > self._room
        self.limit_reached |= node.truncated
        node.children = [_TreeNode(path, kind, (*node.steps, raw), rules) for kind, path, raw in found[: self._room]]
        self._room -= len(node.children)
        self.counts.update(child.kind for child in node.children)
        self._pending.extend(child for child in node.children if child.kind == "directory")


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
    counts = ", ".join(
        (
            format_count(output.total_dirs, "directory", "directories"),
            format_count(output.total_files, "file"),
            *([format_count(output.total_symlinks, "link")] if output.total_symlinks else []),
        )
    )
    notes = [counts, *denied_note(output.hidden)]
    if output.limit_reached:
        notes.append("… marks what max_entries cut off: raise it, or start in a subdirectory")
    elif _is_cut(output.root):
        notes.append("… marks deeper levels: raise max_depth, or start in such a directory")
    return f"[{'; '.join(notes)}]"


def _is_cut(node: TreeOutputNode) -> bool:
    return node.truncated or any(map(_is_cut, node.children or ()))
