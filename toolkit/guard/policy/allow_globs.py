"""Glob patterns of allow rules. Names are compared exactly, never folded, in bounded time for every pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.errors import PolicyError
from toolkit.guard.files.path import split_names


def compile_exact(pattern: str) -> Callable[[str], bool]:
    """A function that tests whether a path matches: ``*`` and ``?`` inside a name, ``**`` for any number of names.

    A pattern without a slash matches at any depth; a slash at its end does not count. A match covers everything below it.
    A path that contains ``..`` never matches, because only the kernel knows where it leads.

    >>> docs = compile_exact("docs/**")
    >>> docs("docs/a.md"), docs("Docs/a.md"), docs("docs/../secret")
    (True, False, False)
    """
    wanted = split_names(pattern)
    if not wanted:
        raise PolicyError(f"a path rule needs a pattern such as 'secrets/**' or '*.pem', not {pattern!r}")
    if len(wanted) == 1 and "/" not in pattern.rstrip("/"):
        wanted = ["**", *wanted]
    if wanted[-1] == "**" and len(wanted) > 1:
        wanted = wanted[:-1]

    def matches(path: str) -> bool:
        names = split_names(path)
        return ".." not in names and _covers(wanted, names)

    return matches


def _covers(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the pattern matches the path or a directory above it. ``reached`` are the possible positions in the pattern."""
    reached = _skip_double_stars({0}, wanted)
    for name in names:
        if len(wanted) in reached:
            return True
        stay = {at for at in reached if at < len(wanted) and wanted[at] == "**"}
        step = {at + 1 for at in reached if at < len(wanted) and wanted[at] != "**" and _matches(wanted[at], name)}
        reached = _skip_double_stars(stay | step, wanted)
    return len(wanted) in reached


def _skip_double_stars(places: set[int], wanted: Sequence[str]) -> set[int]:
    """The positions, and those after a ``**``, which may stand for no name at all."""
    found = set(places)
    for at in sorted(places):
        while at < len(wanted) and wanted[at] == "**":
            at += 1
            found.add(at)
    return found


def _matches(pattern: str, name: str) -> bool:
    """Whether one name matches. Only the last star is ever tried again, so the time is bounded for every input."""
    p = n = 0
    star = mark = -1
    while n < len(name):
        if p < len(pattern) and pattern[p] == "*":
            star, mark = p, n
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", name[n]):
            p += 1
            n += 1
        elif star >= 0:
            mark += 1
            p, n = star + 1, mark
        else:
            return False
    return all(letter == "*" for letter in pattern[p:])
