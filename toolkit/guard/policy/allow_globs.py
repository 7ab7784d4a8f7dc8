"""Globs for allow rules: compared to the letter, never folded, in bounded time whatever the pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.errors import PolicyError


def compile_exact(pattern: str) -> Callable[[str], bool]:
    """Whether a path matches: ``*`` and ``?`` inside a name, ``**`` for any number of names.

    A pattern without a slash matches at any depth; what matches covers everything below it. A path with ``..`` in it is
    never covered: only the kernel knows where it leads.

    >>> docs = compile_exact("docs/**")
    >>> docs("docs/a.md"), docs("Docs/a.md"), docs("docs/../secret")
    (True, False, False)
    """
    wanted = _names(pattern)
    if not wanted:
        raise PolicyError(f"a path rule needs a pattern such as 'secrets/**' or '*.pem', not {pattern!r}")
    if len(wanted) == 1 and "/" not in pattern.strip("/"):
        wanted = ["**", *wanted]
    if wanted[-1] == "**" and len(wanted) > 1:
        wanted = wanted[:-1]

    def matches(path: str) -> bool:
        names = _names(path)
        return ".." not in names and _covers(wanted, names)

    return matches


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _covers(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the pattern fits the path or one of the directories above it; one row of a table a name."""
    reached = _skip({0}, wanted)
    for name in names:
        if len(wanted) in reached:
            return True
        stay = {at for at in reached if at < len(wanted) and wanted[at] == "**"}
        step = {at + 1 for at in reached if at < len(wanted) and wanted[at] != "**" and _fits(wanted[at], name)}
        reached = _skip(stay | step, wanted)
    return len(wanted) in reached


def _skip(places: set[int], wanted: Sequence[str]) -> set[int]:
    """The places, and those behind a ``**``, which may stand for no name at all."""
    found = set(places)
    for at in sorted(places):
        while at < len(wanted) and wanted[at] == "**":
            at += 1
            found.add(at)
    return found


def _fits(pattern: str, name: str) -> bool:
    """One name: the last star tried is the only one that ever needs another try, so no input takes long."""
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
