"""A file system in memory with the rules that SandboxFS promises: a dictionary of paths, and links that are followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Names = tuple[str, ...]
DIRECTORY: Final = "directory"
_MAX_LINKS: Final = 40


@dataclass(frozen=True)
class Link:
    """Where a symbolic link points to."""

    target: str


class Refusal(Exception):
    """``outside`` for what leaves the root, ``missing`` for a way that is not there, ``failed`` for everything else."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind: Final = kind


class PlainFiles:
    """The methods have the names of those of ``SandboxFS``."""

    def __init__(self, nodes: dict[Names, bytes | Link | str]) -> None:
        self._nodes: Final = {(): DIRECTORY, **nodes}

    def copy(self) -> PlainFiles:
        return PlainFiles({path: node for path, node in self._nodes.items() if path})

    def tree(self) -> dict[str, object]:
        return {"/".join(path): node for path, node in self._nodes.items() if path}

    # -- looking -------------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str) -> bytes:
        node = self._nodes.get(self._follow(path))
        if not isinstance(node, bytes):
            raise Refusal("failed")
        return node

    def exists(self, path: str) -> bool:
        return self._node(path) is not None

    def is_dir(self, path: str) -> bool:
        return self._node(path) == DIRECTORY

    def is_file(self, path: str) -> bool:
        return isinstance(self._node(path), bytes)

    def _node(self, path: str) -> object:
        try:
            return self._nodes.get(self._follow(path))
        except Refusal as refusal:
            if refusal.kind == "missing":
                return None
            raise

    # -- changing ------------------------------------------------------------------------------------------------------

    def write_bytes(self, path: str, data: bytes) -> str:
        place = self._follow(path, make=True)
        if not place or isinstance(self._nodes.get(place, b""), str):
            raise Refusal("failed")
        self._make_above(place)
        self._nodes[place] = data
        return "done"

    def make_dir(self, path: str) -> bool:
        place = self._follow(path, make=True, directory=True)
        if self._nodes.get(place) == DIRECTORY:
            return False
        if place in self._nodes:
            raise Refusal("failed")
        self._make_above(place)
        self._nodes[place] = DIRECTORY
        return True

    def remove_file(self, path: str) -> None:
        place = self._entry(path)
        # Who ends a path in "." means a directory.
        if path.split("/")[-1] == "." or self._nodes.get(place, DIRECTORY) == DIRECTORY:
            raise Refusal("failed")
        del self._nodes[place]

    def remove_dir(self, path: str) -> None:
        place = self._entry(path)
        if not place or self._nodes.get(place) != DIRECTORY or self._below(place):
            raise Refusal("failed")
        del self._nodes[place]

    def rename(self, old: str, new: str) -> None:
        source, target = self._entry(old), self._entry(new)
        if "." in (old.split("/")[-1], new.split("/")[-1]) and self._nodes.get(source) != DIRECTORY:
            raise Refusal("failed")
        if not source or not target or source not in self._nodes or target in self._nodes:
            raise Refusal("failed")
        if self._nodes.get(target[:-1]) != DIRECTORY or target[: len(source)] == source:
            raise Refusal("failed")
        moved = {path: node for path, node in self._nodes.items() if path[: len(source)] == source}
        for path, node in moved.items():
            del self._nodes[path]
            self._nodes[target + path[len(source) :]] = node

    def make_link(self, path: str, target: str) -> bool:
        place = tuple(path.split("/"))
        if place in self._nodes or self._nodes.get(place[:-1]) != DIRECTORY:
            return False
        self._nodes[place] = Link(target)
        return True

    def _make_above(self, place: Names) -> None:
        for length in range(1, len(place)):
            self._nodes.setdefault(place[:length], DIRECTORY)

    def _below(self, place: Names) -> bool:
        return any(path[: len(place)] == place and path != place for path in self._nodes)

    # -- ways ----------------------------------------------------------------------------------------------------------

    def _follow(self, text: str, *, make: bool = False, directory: bool = False, links: int = 0) -> Names:
        """Where a path leads, with every link followed."""
        here: Names = ()
        todo = list(reversed(text.split("/")))
        while todo:
            name = todo.pop()
            if name in ("", "."):
                # At the end it stands for a directory.
                node = self._nodes.get(here)
                if not todo and node != DIRECTORY and not (directory and node is None):
                    raise Refusal("missing")
                continue
            if name == "..":
                if here not in self._nodes:
                    raise Refusal("missing")
                if not here:
                    raise Refusal("outside")
                here = here[:-1]
                continue
            place = (*here, name)
            node = self._nodes.get(place)
            if isinstance(node, Link):
                if links >= _MAX_LINKS:
                    raise Refusal("failed")
                # Where other names follow the link, nothing is made behind it: its target must be there.
                is_last = not todo
                aim = "/".join((*here, node.target))
                here = self._follow(aim, make=make and is_last, directory=directory and is_last, links=links + 1)
                if not is_last and self._nodes.get(here) != DIRECTORY:
                    raise Refusal("missing")
                continue
            if todo and node != DIRECTORY and not (make and node is None):
                raise Refusal("missing")
            here = place
        return here

    def _entry(self, text: str) -> Names:
        """The name itself: links above it are followed, the last one is not."""
        *above, last = [name for name in text.split("/") if name not in ("", ".")] or [""]
        if last in ("", ".."):
            return self._follow(text)
        return (*self._follow("/".join(above)), last)
