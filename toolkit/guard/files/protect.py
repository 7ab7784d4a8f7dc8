"""What may be read and what may be changed below the roots: deny rules, protected names, read-only places, consent.

Promise: every check is made twice, on the path as it was requested and on the real path of the open directory that
contains the name. So neither a link nor ``..`` nor another spelling of the same name gets around it. Names that do not
exist yet are checked in the same way.

Limit: a process that may rename things in the workspace can first give a denied or protected file another name.
"""

from __future__ import annotations

import copy
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolkit.errors import SandboxViolation, SetupError
from toolkit.guard.files.consent import (
    Consent,
    Folded,
    Forms,
    Globs,
    LocatedPath,
    RealPath,
    approval_error,
    fold,
    fold_all,
)
from toolkit.guard.files.path import SandboxPath, outside_error, removed_root, split_names, to_failure
from toolkit.guard.files.place import Descriptor, Names, Place, find_place, is_directory, real_names, trace_links
from toolkit.guard.files.resolve import HANDLE, Resolver
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.files.handles import Check
    from toolkit.guard.permission import GitMode


# File systems with short names call the first one by the second.
ALWAYS_PROTECTED: Final = (".git", "git~1")

HoldPlaces: TypeAlias = "Callable[[Iterable[Names], Check], AbstractContextManager[None]]"
"""Keeps other writers of these real paths out; ``Check`` ends the wait by raising."""

_LOADS_CODE: Final = "the toolkit or its Python interpreter loads code or settings from"


class Root(Descriptor):
    """A directory that tools may use. It is opened once and handed on: its name may lead elsewhere a moment later.

    ``name`` is the absolute path it was given by, ``real`` its real path when it was opened.
    """

    __slots__ = ("name", "names", "real", "real_names", "writable")

    def __init__(self, number: int, name: str, real: str, *, writable: bool) -> None:
        super().__init__(number)
        self.name: Final = name
        self.names: Final[Names] = tuple(part for part in name.split("/") if part)
        self.real: Final = real
        self.real_names: Final[Names] = tuple(part for part in real.split("/") if part)
        self.writable: Final = writable

    @property
    def identity(self) -> list[int]:
        """Device and inode number, which distinguish it from another directory that gets its name later."""
        info = os.fstat(self.number)
        return [info.st_dev, info.st_ino]

    def refuse_removed(self) -> None:
        """Raises if the directory is no longer there: it would look as if it were empty."""
        try:
            is_removed = os.fstat(self.number).st_nlink == 0
        except OSError as error:
            raise to_failure(error, ".") from None
        if is_removed:
            raise removed_root()

    @classmethod
    def open(cls, given: str | os.PathLike[str] | Root, what: str, *, writable: bool) -> Root:
        """Open a directory that the user named; ``what`` it is goes into the error. One that is open stays the same."""
        if isinstance(given, Root):
            same = given.writable == writable
            return given if same else cls(os.dup(given.number), given.name, given.real, writable=writable)
        try:
            number = os.open(given, HANDLE | os.O_DIRECTORY)
        except OSError as error:
            name = os.fspath(given)
            if error.errno == errno.ENOENT:
                raise SetupError(f"the {what} {name!r} does not exist; create it, or name another folder") from error
            raise SetupError(f"{what} {name!r} cannot be opened as a directory: {error.strerror}") from error
        real = "/" + "/".join(real_names(number))
        return cls(number, os.path.abspath(given), real, writable=writable)


def journal_outside(path: str, roots: Sequence[Root]) -> str:
    """The directory for journals. It must be out of reach of tools; otherwise a tool could write a journal that the next
    start would trust."""
    names = tuple(name for name in os.path.realpath(path).split("/") if name)
    for root in roots:
        above = real_names(root.number)
        if names[: len(above)] == above:
            raise SetupError(f"the journal directory {path!r} is inside the root {root.name!r}; give one outside")
    return "/" + "/".join(names)


def hold_nothing(places: Iterable[Names], check: Check) -> AbstractContextManager[None]:
    """For files that nobody else writes."""
    return nullcontext()


class AccessRules:
    """The workspace, the extra roots, and the rules that hold below them."""

    def __init__(
        self,
        workspace: Root,
        extra: Sequence[Root],
        protected: Globs,
        read_only: ReadOnlyPlaces | None = None,
        git: GitMode = "commit",
        hold: HoldPlaces = hold_nothing,
    ) -> None:
        self.hold: Final = hold
        self.workspace: Final = workspace
        self.roots: Final = (workspace, *extra)
        self._extra: Final = {root.name: root for root in extra}
        self._protected: Final = protected
        self._read_only: Final = read_only
        self._git: Final = git
        self._deny: Globs | None = None
        self._consent: Consent | None = None
        self.checks_reads = False
        """Whether anything may not be read."""
        self.may_write = True
        """Whether these are the rules of a tool that may write."""

    def for_reading(self) -> AccessRules:
        """The same for a tool that may only read."""
        view = copy.copy(self)
        view.may_write = False
        return view

    def with_deny(self, globs: Sequence[str]) -> AccessRules:
        """The same with additional deny rules."""
        before = self._deny.globs if self._deny else ()
        added = Globs(globs)
        return self._with(Globs((*before, *added.globs)) if before or added.globs else None, self._consent)

    def with_consent(self, consent: Consent | None) -> AccessRules:
        """The same for a call that may touch only this."""
        return self._with(self._deny, consent)

    def _with(self, deny: Globs | None, consent: Consent | None) -> AccessRules:
        view = copy.copy(self)
        view._deny, view._consent = deny, consent
        view.checks_reads = deny is not None or (consent is not None and consent.concerns_reads)
        return view

    def root(self, path: SandboxPath) -> Root:
        """The root that ``path`` is relative to."""
        return self._extra[path.root] if path.root else self.workspace

    def check_denied(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what a deny rule covers. ``real`` is the real path, once that is known."""
        forms = self.forms_of(path, real)
        if self.denies(forms):
            raise denied_error(path.shown)
        return forms

    def denies(self, forms: Forms) -> bool:
        """Whether a deny rule covers a path with these names."""
        return self._deny is not None and self._deny.cover(forms)

    def check_read(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what may not be read: what is denied and, once the real path is known, what this call may not touch."""
        forms = self.check_denied(path, real)
        if self._consent is not None and real is not None:
            self._consent.check(forms, real, self.real_path, path.shown, writes=False)
        return forms

    def hides(self, names: Names) -> bool:
        """Whether a call may not list this path below the workspace."""
        real = real_names(self.workspace.number) + names
        forms = self.forms_of(SandboxPath(names), real)
        if self.denies(forms):
            return True
        return self._consent is not None and self._consent.hides(forms, real, self.real_path)

    def check_write(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what may not be read, and what may not be written, moved or removed."""
        forms = self.check_denied(path, real)
        if not self.may_write:
            raise SandboxViolation(
                f"'{path.shown}' may not be changed: this tool may only read files; a tool that writes must declare the "
                f"permission 'write', and the context must grant it"
            )
        if not self.workspace.writable:
            raise SandboxViolation("the workspace is read-only: nothing may be written, moved or removed")
        if not self.root(path).writable or (real is not None and not self._is_writable(real)):
            raise SandboxViolation(f"'{path.shown}' may not be changed: it is below a read-only root")
        if self._protected.cover(forms):
            raise SandboxViolation(f"'{path.shown}' is protected: it may not be written, moved or removed")
        if self._read_only is not None and self._read_only.cover(forms):
            raise SandboxViolation(f"'{path.shown}' may not be changed: {_LOADS_CODE} there")
        if self._consent is not None and real is not None:  # last, because no approval changes what is refused above
            self._consent.check(forms, real, self.real_path, path.shown, writes=True)
        return forms

    def check_move(self, place: Place) -> None:
        """Refuse to move or remove a root, a directory that contains one, and what leads to a read-only place."""
        real = place.real
        if any(names[: len(real)] == real for _, names in self._real_roots()):
            raise SandboxViolation(f"'{place.shown}' may not be moved or removed: it is a root or contains one")
        if self._read_only is not None and self._read_only.are_below(self.forms_of(place.path, real)):
            raise SandboxViolation(f"'{place.shown}' may not be moved or removed: {_LOADS_CODE} below it")

    def outermost(self, real: Names) -> int:
        """How many names of a real path are those of the outermost root around it."""
        return min(len(real) - len(below) for _, below in self._around(real))

    def protect_repositories(self, places: Sequence[Place]) -> AbstractContextManager[None]:
        """Refuse changes that, all together, complete or change a repository. Make them inside the block."""
        if self._git == "write":
            return nullcontext()
        from toolkit.guard.files.changes import without_repositories

        return without_repositories(places)

    def locate(self, path: SandboxPath, text: str, resolver: Resolver, *, is_written: bool) -> LocatedPath:
        """Where ``path`` leads: the name itself and, if that is a link, its target.

        What a deny rule covers is not found, but ``forms`` has its real names, so that the policy sees the rule as well.
        """
        found = LocatedPath(text, self.forms_of(path), is_written)
        if self.denies(found.forms):
            return found
        try:
            for place, info in self._places_of(path, resolver):
                forms = self.forms_of(path, place.real)
                if self.denies(forms):
                    return found._replace(forms=forms, real=None)
                folder = os.fstat(place.folder)
                own = None if info is None else (info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode))
                is_link = info is not None and stat.S_ISLNK(info.st_mode)
                found = found._replace(
                    forms=Forms({*found.forms.relative, *forms.relative}, {*found.forms.absolute, *forms.absolute}),
                    real=None if is_link else self.real_path(place.real),
                    places=(*found.places, place.real),
                    is_directory=place.name is None or is_directory(info),
                    identity=f"{found.identity}{place.real} {folder.st_dev} {folder.st_ino} {place.missing} {own}\n",
                )
        except (OSError, SandboxViolation):
            return found._replace(real=None)
        if found.real is None:
            return found
        below = found.real.below[0] if found.real.in_workspace else None
        shown = display("/".join(("", *found.places[-1])) if below is None else "/".join(below) or ".")
        return found._replace(shown="" if shown == path.shown else shown)

    def _places_of(self, path: SandboxPath, resolver: Resolver) -> Iterator[tuple[Place, os.stat_result | None]]:
        """The place of the name and, if that is a link, the place it leads to; and what is there."""
        for follow in (False, True):
            with find_place(self.root(path).number, path, resolver, follow=follow) as place:
                info = place.stat()
                yield place, info
                if info is None or not stat.S_ISLNK(info.st_mode):
                    return

    def covers_entry(self, folder: Forms, name: str) -> bool:
        """Whether ``name`` may never be moved, in a directory that may."""
        return self._protected.cover_entry(folder, name) or (
            self._deny is not None and self._deny.cover_entry(folder, name)
        )

    def asks_about_entry(self, folder: Forms, place: Names, name: str) -> bool:
        """Whether ``name`` may not be moved without approval, in a directory that may; ``place`` is its real path."""
        return self._consent is not None and (
            self._consent.rule_for_entry(folder, place, name, writes=True) is not None
        )

    def listing_filter(self, path: SandboxPath, number: int) -> ListingFilter | None:
        """What a listing of the directory that was opened for ``path`` leaves out."""
        if not self.checks_reads:
            return None
        place = real_names(number)
        consent = self._consent if self._consent is not None and self._consent.concerns_reads else None
        inner = [
            InnerRoot(names[len(place) :], root.names)
            for root, names in self._real_roots()
            if len(names) > len(place) and names[: len(place)] == place
        ]
        return ListingFilter(self._deny, consent, self.check_read(path, place), place, inner)

    def real_path(self, real: Names) -> RealPath:
        """A real path below the roots, as allow rules compare it."""
        around = list(self._around(real))
        return RealPath(
            in_workspace=any(root is self.workspace for root, _ in around),
            below=tuple(below for _, below in around),
            absolute=(real, *(root.names + below for root, below in around)),
        )

    def forms_of(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """The names that rules compare: as requested and, if the real path is given, all of the real ones."""
        relative: set[Names] = {path.parts}
        absolute: set[Names] = {self.root(path).names + path.parts}
        if real is not None:
            around = list(self._around(real))
            if not around:  # it was moved out of every root after it was opened
                raise outside_error(path.shown)
            relative.update(below for _, below in around)
            absolute.update((real, *(root.names + below for root, below in around)))
        return Forms(map(fold_all, relative), map(fold_all, absolute))

    def _is_writable(self, real: Names) -> bool:
        """The deepest root around it decides; of two equal ones, the read-only one."""
        around = [(len(real) - len(below), not root.writable) for root, below in self._around(real)]
        return not max(around, default=(0, True))[1]

    def _around(self, real: Names) -> Iterator[tuple[Root, Names]]:
        """The roots around a real path, the workspace first, and the names from there."""
        for root, names in self._real_roots():
            if real[: len(names)] == names:
                yield root, real[len(names) :]

    def _real_roots(self) -> Iterator[tuple[Root, Names]]:
        """Looked up each time, because a root may be renamed while it is held open."""
        for root in self.roots:
            yield root, real_names(root.number)


class InnerRoot(NamedTuple):
    """A root below a directory: the names from there, and the absolute names it was given by."""

    below: Names
    given: Names


class ListingFilter:
    """The deny and ask rules for the names in one directory, which is not hidden itself.

    ``inner`` are the roots below it: there, patterns start again.
    """

    __slots__ = ("_consent", "_deny", "_folder", "_inner", "_place")

    def __init__(
        self,
        deny: Globs | None,
        consent: Consent | None,
        folder: Forms,
        place: Names,
        inner: Sequence[InnerRoot] = (),
    ) -> None:
        self._deny: Final = deny
        self._consent: Final = consent
        self._folder: Final = folder
        self._place: Final = place
        self._inner: Final = inner

    def find_refusal(self, name: str, shown: str = "") -> SandboxViolation | None:
        """Why a listing leaves out the entry with this name, and why it cannot be opened; None if it is shown."""
        if self._deny is not None and self._deny.cover_entry(self._folder, name):
            return denied_error(shown)
        if self._consent is None:
            return None
        rule = self._consent.rule_for_entry(self._folder, self._place, name, writes=False)
        return None if rule is None else approval_error(shown, rule)

    def below(self, name: str) -> ListingFilter:
        """The filter for the directory with this name."""
        folder, inner = self._folder.below(name), [root for root in self._inner if root.below[0] == name]
        for root in inner:
            if len(root.below) == 1:
                folder = Forms([*folder.relative, ()], [*folder.absolute, fold_all(root.given)])
        deeper = [InnerRoot(root.below[1:], root.given) for root in inner if len(root.below) > 1]
        return ListingFilter(self._deny, self._consent, folder, (*self._place, name), deeper)


def denied_error(shown: str) -> SandboxViolation:
    """The refusal of what a deny rule covers."""
    return SandboxViolation(f"'{shown}' may not be used: a deny rule matches it")


# -- read-only places --------------------------------------------------------------------------------------------------

_Pattern: TypeAlias = tuple[frozenset[str], ...]


class ReadOnlyPlaces:
    """Places inside the roots that may be read but never changed, because trusted code is loaded from there.

    Promise: nothing at or below such a place is written, moved, removed or created, and no directory or link on the way
    to it is moved or removed, by whatever spelling or link it is reached. A place need not exist. Names are compared as
    deny rules compare them, so too much is refused.
    Limit: links on the way are found when the places are given; what leads there over a link that is made later has the
    protection of its real path only.

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
            way = trace_links(path)
            links = {tuple(split_names(link)) for link in way.links}
            found = {tuple(split_names(form)) for form in (os.path.normpath(path), way.forms[-1])}
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


def _to_pattern(names: Iterable[str]) -> _Pattern:
    return tuple(frozenset(fold(name)) for name in names)


def _starts_with(path: Folded, pattern: _Pattern) -> bool:
    return len(path) >= len(pattern) and all(
        not wanted.isdisjoint(name) for wanted, name in zip(pattern, path, strict=False)
    )
