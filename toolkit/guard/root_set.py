"""Many directories, and questions about a path that cost the same however many there are.

A process may build a toolkit for each of thousands of workspaces; looking at every root for every path would make each
new toolkit slower than the one before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator


class RootSet:
    """Directories by their real paths.

    >>> roots = RootSet(["/srv/a/work"])
    >>> roots.covers("/srv/a/work/x.py"), roots.has_at_or_below("/srv"), roots.names_in("/srv")
    (True, True, {'a'})
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots: set[str] = set()
        # For each directory above a root: the names in it that lead to one.
        self._names: dict[str, set[str]] = {}
        for root in roots:
            self.add(os.path.realpath(root))

    def __contains__(self, path: str) -> bool:
        return path in self._roots

    def add(self, root: str) -> bool:
        """Adds a real path; whether it is new."""
        if root in self._roots:
            return False
        self._roots.add(root)
        for folder in above(root):
            names = self._names.setdefault(folder, set())
            if os.path.basename(root) in names:
                break  # and so are the ones further up
            names.add(os.path.basename(root))
            root = folder
        return True

    def covers(self, path: str) -> bool:
        """Whether a path is one of the directories, or below one."""
        return path in self._roots or any(folder in self._roots for folder in above(path))

    def has_at_or_below(self, path: str) -> bool:
        """Whether a path is one of the directories, or above one."""
        return path in self._roots or path in self._names

    def names_in(self, folder: str) -> set[str]:
        """The names in a directory that are one of the directories, or lead to one."""
        return self._names.get(folder, set())


def above(path: str) -> Iterator[str]:
    """The directories above an absolute path, the nearest first."""
    while path != (path := os.path.dirname(path)):
        yield path
