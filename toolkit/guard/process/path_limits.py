"""Path rules as commands obey them: what a rule denies cannot be opened by a command, or cannot be changed by it.

Before a command starts, everything that the patterns cover below its roots is found, and the sandbox mounts over it: an
entry without any content or permission where a rule hides, the entry itself read-only where a rule only keeps it from
being changed. Directories on the way to what a pattern finds by its place are held, so that no command can move it to
where the pattern does not lead.

Promise, full tier: nothing that existed when the command started and that a pattern covers is read or changed by it,
through links, other spellings and all that it starts. Reduced tier, which has no mounts: such a command does not run.

Limits: what is made later, or replaced; what another command moves while the search goes on, if a pattern finds it by its
name alone; links after a ``**``; another hard link to the file; a copy in the history of a repository. The names remain
visible. While directories on the way are held, moving something out of them needs a copy (``EXDEV``).
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from toolkit.errors import ToolNotAllowed
from toolkit.forks import start_again_in_child
from toolkit.guard.files.consent import ANY_ENTRY, Forms, Globs, PathLimit, escape_pattern, fold
from toolkit.guard.files.handles import Check
from toolkit.guard.files.path import split_names
from toolkit.guard.files.place import Names
from toolkit.guard.files.protect import Root
from toolkit.guard.process.messages import MOVED, LimitedEntry, identity
from toolkit.guard.process.program import is_below
from toolkit.guard.review.scan import MAX_FOLDERS, EntryPlace, Scanner, ScanRoot, forms_of
from toolkit.visible import display

MAX_ENTRIES: Final = 2_000
_MAX_PATH: Final = 4_000
# (hides, asks): what is covered by a later kind as well obeys that one.
_KINDS: Final = ((False, True), (False, False), (True, True), (True, False))


Approvals: TypeAlias = Mapping[PathLimit, Sequence[Names]]
"""The real paths for which an approval lifts a limit that asks."""
NO_APPROVALS: Final[Approvals] = {}
_Found: TypeAlias = tuple[LimitedEntry, PathLimit]


class HiddenPaths(NamedTuple):
    """How many paths a command could not open, and the rule because of which. A directory counts as one."""

    number: int
    because: str
    asks: bool = False
    """Whether a command that names such a path can be approved."""

    def __str__(self) -> str:
        way_out = " (name the path in the command to ask for approval)" if self.asks else ""
        return f"{self.number} {'path' if self.number == 1 else 'paths'} by {self.because}{way_out}"


class LimitedPaths:
    """Finds what path rules cover below the roots of a guard. May be used by several threads."""

    def __init__(self, roots: Sequence[Root], limits: Sequence[PathLimit]) -> None:
        self._roots: Final = [ScanRoot(root) for root in roots]
        # Each kind is looked for by itself, because what an approval lifts may be around what nothing lifts.
        self._kinds: Final = [
            tuple(limit for limit in dict.fromkeys(limits) if (limit.hides, limit.asks) == kind) for kind in _KINDS
        ]
        self._reasons: Final = {limit.because: limit.asks for limit in limits}
        self._finders: Final[dict[tuple[PathLimit, ...], _LimitFinder]] = {}
        self.start_again_in_child()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """Another thread may be searching while this process is forked."""
        self._lock = threading.Lock()

    def find(self, approved: Approvals, check: Check) -> tuple[list[LimitedEntry], tuple[HiddenPaths, ...]]:
        """What the sandbox mounts over, outermost first, and how much of it each rule hides. ``check`` may end the search."""
        with self._lock:
            return self._find(approved, check)

    def _find(self, approved: Approvals, check: Check) -> tuple[list[LimitedEntry], tuple[HiddenPaths, ...]]:
        found: dict[str, _Found] = {}
        for group in self._groups(approved):
            finder = self._finders.setdefault(group, _LimitFinder(self._roots, group))
            places = ["/" + "/".join(names) for names in approved.get(group[0], ())]
            found |= {f"{entry.root}/{entry.path}": (entry, limit) for entry, limit in finder.find(places, check)}
        found = _without_hidden(found)
        if len(found) > MAX_ENTRIES:
            raise ToolNotAllowed(
                f"the command was not run: path rules cover {len(found):,} paths one by one, and the sandbox hides at most"
                f" {MAX_ENTRIES:,}; name the directory around them in the rule"
            )
        hidden = Counter(limit.because for _, limit in found.values() if limit.hides)
        counts = tuple(HiddenPaths(hidden[why], why, asks) for why, asks in self._reasons.items() if hidden[why])
        return [entry for entry, _ in found.values()], counts

    def _groups(self, approved: Approvals) -> Iterator[tuple[PathLimit, ...]]:
        """The limits to look for together: of one kind, but one by one where an approval may lift one and not another."""
        for kind in filter(None, self._kinds):
            if any(approved.get(limit) for limit in kind):
                yield from ((limit,) for limit in kind)
            else:
                yield kind

    def close(self) -> None:
        with self._lock:
            for root in self._roots:
                root.close()


def _without_hidden(found: dict[str, _Found]) -> dict[str, _Found]:
    """The same, outermost first, without what is inside something that is hidden anyway."""
    kept: dict[str, _Found] = {}
    around = ""
    for path in sorted(found, key=lambda path: path.split("/")):
        if not around or not is_below(path, around):
            kept[path] = found[path]
            around = path if found[path][0].hides else around
    return kept


class _LimitFinder:
    """Finds what the limits of one kind cover."""

    def __init__(self, roots: Sequence[ScanRoot], limits: Sequence[PathLimit]) -> None:
        self._roots: Final = roots
        self._limits: Final = limits
        self._known: list[tuple[PathLimit, Globs]] = []
        self._scanner: Scanner | None = None

    def find(self, approved: Sequence[str], check: Check) -> Iterator[tuple[LimitedEntry, PathLimit]]:
        self._look_through_links()
        assert self._scanner is not None
        scan = self._scanner.scan(check)
        if scan.left_out:
            raise ToolNotAllowed(
                f"the command was not run: below its roots are more than {MAX_FOLDERS:,} directories, so not all that path"
                " rules cover was found; use a smaller workspace"
            )
        whole = self._whole_roots(approved)
        yield from ((self._entry(place, limit), limit) for place, limit in whole.items())
        for place in scan.kept:
            if EntryPlace(place.root, "") not in whole:
                limit = next(limit for limit, globs in self._known if globs.cover(self._forms(place)))
                yield from self._around_approved(place, limit, approved if limit.asks else ())
        for place in scan.unreadable:  # its owner could make it readable, and files in it may be opened by name
            if not place.path:
                raise _unreadable(self._roots[place.root])
            yield self._entry(place, self._limits[0]), self._limits[0]

    def _whole_roots(self, approved: Sequence[str]) -> dict[EntryPlace, PathLimit]:
        """Roots in which nothing may be changed: then nothing new may be in them either."""
        return {
            EntryPlace(number, ""): limit
            for limit, globs in self._known
            for number, root in enumerate(self._roots)
            if not limit.hides and root.path not in approved and globs.cover(forms_of(root, "").below(ANY_ENTRY))
        }

    def _look_through_links(self) -> None:
        """A pattern may lead through links, which the scan does not follow: then also by the real place. The scan is made
        anew only if that changes what to look for."""
        known = [
            (limit, Globs(patterns))
            for limit in self._limits
            if (patterns := list(dict.fromkeys(self._real_patterns(limit.pattern))))
        ]
        if [globs.globs for _, globs in known] != [globs.globs for _, globs in self._known]:
            self._known = known
            union = Globs([glob for _, globs in known for glob in globs.globs])
            self._scanner = Scanner(self._roots, union, (), in_repositories=True)

    def _real_patterns(self, pattern: str) -> Iterator[str]:
        yield _without_stars(pattern)
        names = split_names(pattern)
        seen: set[tuple[str, int]] = set()
        for root in self._roots if "/" in pattern.rstrip("/") else ():
            yield from self._behind_links(root.real_path(), names, seen)
            for own in root.names if pattern.startswith("/") else ():
                above = split_names(own)
                if names[: len(above)] == above:
                    yield from self._behind_links(root.real_path(), names[len(above) :], seen)

    def _behind_links(self, folder: str, names: Sequence[str], seen: set[tuple[str, int]]) -> Iterator[str]:
        if len(names) < 2 or names[0] == "**" or (folder, len(names)) in seen:
            return
        seen.add((folder, len(names)))  # links that lead in a circle
        first = Globs([f"/{names[0]}"])
        try:
            with os.scandir(folder) as entries:
                found = [
                    (entry.name, entry.is_symlink())
                    for entry in entries
                    if (entry.is_symlink() or entry.is_dir()) and first.cover(Forms([(fold(entry.name),)], []))
                ]
        except OSError:
            return
        for name, is_link in found:
            real = f"{folder}/{name}"
            if is_link:
                real = os.path.realpath(real)
                around = next((root for root in self._roots if is_below(real, root.real_path())), None)
                if around is None or not os.path.isdir(real):
                    continue
                below = os.path.relpath(real, around.real_path())
                start = "" if below == "." else escape_pattern(below) + "/"
                yield _without_stars("/" + start + "/".join(names[1:]))
            yield from self._behind_links(real, names[1:], seen)

    def _around_approved(
        self, place: EntryPlace, limit: PathLimit, approved: Sequence[str], *, is_beside: bool = False
    ) -> Iterator[tuple[LimitedEntry, PathLimit]]:
        """The entry or, if something below it was approved, what is beside that (``is_beside``)."""
        path = f"{self._roots[place.root].path}/{place.path}"
        if any(is_below(path, one) for one in approved):
            return
        if not any(is_below(one, path) for one in approved):
            yield self._entry(place, limit, holds_way=is_beside), limit
            return
        for name in os.listdir(path):
            yield from self._around_approved(place.child(name), limit, approved, is_beside=True)

    def _entry(self, place: EntryPlace, limit: PathLimit, *, holds_way: bool = False) -> LimitedEntry:
        root = self._roots[place.root]
        while len(os.fsencode(f"{root.path}/{place.path}")) > _MAX_PATH:  # no mount can be there
            place = place.parent
        try:
            info = os.stat(place.path or ".", dir_fd=root.fd, follow_symlinks=False)
        except FileNotFoundError:
            raise ToolNotAllowed(f"the command was not run: {MOVED}") from None
        except PermissionError:  # its name can be read, but nothing in that directory opened
            if not place.path:
                raise _unreadable(root) from None
            return self._entry(place.parent, limit, holds_way=holds_way)
        return LimitedEntry(
            root.path, place.path, identity(info), limit.hides, holds_way or not _is_by_name(limit.pattern)
        )

    def _forms(self, place: EntryPlace) -> Forms:
        return forms_of(self._roots[place.root], place.path)


def _unreadable(root: ScanRoot) -> ToolNotAllowed:
    return ToolNotAllowed(
        f"the command was not run: {display(root.path)!r} cannot be read, so what path rules cover in it was not found;"
        " make it readable, or leave it out of the roots"
    )


def _is_by_name(pattern: str) -> bool:
    """Whether it covers an entry because of its name alone, wherever that is moved.

    >>> [pattern for pattern in (".env", "**/keys/**", "**/keys/k", "a/k", "secret/**", "*/**") if _is_by_name(pattern)]
    ['.env', '**/keys/**']
    """
    text = _without_stars(pattern)
    return not text.startswith("/") and all(name == "**" for name in split_names(text)[:-1])


def _without_stars(pattern: str) -> str:
    """The pattern of a directory for that of everything in it, so that it is found as one entry.

    >>> _without_stars("secret/**"), _without_stars("a/b/*"), _without_stars("**/keys/**"), _without_stars("*.pem")
    ('/secret', 'a/b', '**/keys', '*.pem')
    """
    text = pattern.rstrip("/")
    while text.endswith(("/**", "/*")):
        text = text.rpartition("/")[0]
    if text in ("", "*", "**"):
        return pattern
    return text if "/" in text or "/" not in pattern.rstrip("/") else f"/{text}"
