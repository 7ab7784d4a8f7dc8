"""Places inside the roots that may be read but never changed, because trusted code is loaded from there.

Promise: nothing at or below such a place is written, moved, removed or created, and no directory or link on the way to it is
moved or removed, by whatever spelling or link it is reached. A place need not exist.

Limit: links on the way are found when the places are given; what leads there over a link that is made later has the
protection of its real path only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.files.consent import Folded, Forms, fold
from toolkit.guard.files.path import split_names
from toolkit.guard.files.resolve import MAX_LINKS

if TYPE_CHECKING:
    from toolkit.guard.fs.place import Names

_Pattern: TypeAlias = tuple[frozenset[str], ...]


class ReadOnlyPlaces:
    """Absolute paths of files and directories. Names are compared as deny rules compare them, so too much is refused.

    >>> from toolkit.guard.files.consent import fold_all
    >>> places = ReadOnlyPlaces(["/ws/.venv"])
    >>> def forms(text: str) -> Forms:
    ...     return Forms([], [fold_all(text.split("/"))])
    >>> places.cover(forms("ws/.VENV/lib/x.pth")), places.cover(forms("ws/src")), places.are_below(forms("ws"))
    (True, False, True)
    """

    __slots__ = ("_places", "_ways")

    def __init__(self, paths: Sequence[str]) -> None:
        places: set[Names] = set()
        ways: set[Names] = set()
        for path in _require_absolute(paths):
            real, links = _trace(path)
            found = {tuple(split_names(os.path.normpath(path))), real}
            places |= found
            ways |= links
            ways.update(place[:depth] for place in found | links for depth in range(len(place)))
        self._places: Final = tuple(map(_to_pattern, sorted(places)))
        self._ways: Final = tuple(map(_to_pattern, sorted(ways)))

    def cover(self, forms: Forms) -> bool:
        """Whether the path is one of the places, or below one."""
        return any(_starts_with(path, place) for place in self._places for path in forms.absolute)

    def are_below(self, forms: Forms) -> bool:
        """Whether the path is a directory above one of the places, or a link on the way to one."""
        return any(len(path) == len(way) and _starts_with(path, way) for way in self._ways for path in forms.absolute)


def _require_absolute(paths: Sequence[str]) -> Iterator[str]:
    if isinstance(paths, str):
        raise SetupError(f"read_only must be a list of paths: write [{paths!r}]")
    for path in paths:
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise SetupError(f"read_only must be absolute paths, not {path!r}")
        yield path


def _trace(path: str) -> tuple[Names, set[Names]]:
    """The real path, and every link on the way to it by the real path of its directory. Missing names stay as they are."""
    here: list[str] = []
    links: set[Names] = set()
    followed = 0
    todo = split_names(path)[::-1]
    while todo:
        name = todo.pop()
        if name == "..":
            del here[-1:]
            continue
        try:
            target = os.readlink("/".join(("", *here, name)))
        except OSError:
            target = ""
        here.append(name)
        if target and followed < MAX_LINKS:  # more is a loop, which leads nowhere
            followed += 1
            links.add(tuple(here))
            del here[0 if target.startswith("/") else -1 :]
            todo += split_names(target)[::-1]
    return tuple(here), links


def _to_pattern(names: Iterable[str]) -> _Pattern:
    return tuple(frozenset(fold(name)) for name in names)


def _starts_with(path: Folded, pattern: _Pattern) -> bool:
    return len(path) >= len(pattern) and all(
        not wanted.isdisjoint(name) for wanted, name in zip(pattern, path, strict=False)
    )
