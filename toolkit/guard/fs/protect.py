"""What may be read and what may be changed below the roots: deny rules, protected names, read-only roots.

Promise: every check is made twice, on the path as it was requested and on the real path of the open directory that
contains the name. So neither a link nor ``..`` nor another spelling of the same name gets around it. Names that do not
exist yet are checked in the same way.

Limit: a process that may rename things in the workspace can first give a denied or protected file another name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from toolkit.errors import SandboxViolation
from toolkit.guard.fs.deny_globs import Forms, Globs, fold_all
from toolkit.guard.fs.path import SandboxPath, outside_error
from toolkit.guard.fs.place import Descriptor, Names, real_names

# File systems with short names call the first one by the second.
ALWAYS_PROTECTED: Final = (".git", "git~1")


class Root(Descriptor):
    """A directory that tools may use, held open, with the absolute name it was given by."""

    __slots__ = ("name", "names", "writable")

    def __init__(self, number: int, name: str, *, writable: bool) -> None:
        super().__init__(number)
        self.name: Final = name
        self.names: Final[Names] = tuple(part for part in name.split("/") if part)
        self.writable: Final = writable


class AccessRules:
    """The workspace, the extra roots, and the rules that hold below them."""

    __slots__ = ("_extra", "_protected", "deny", "workspace")

    def __init__(self, workspace: Root, extra: Sequence[Root], protected: Globs, deny: Globs | None = None) -> None:
        self.workspace: Final = workspace
        self.deny: Final = deny
        self._extra: Final = {root.name: root for root in extra}
        self._protected: Final = protected

    def with_deny(self, globs: Sequence[str]) -> AccessRules:
        """The same with additional deny rules."""
        before = self.deny.globs if self.deny else ()
        added = Globs(globs)
        deny = Globs((*before, *added.globs)) if before or added.globs else None
        return AccessRules(self.workspace, tuple(self._extra.values()), self._protected, deny)

    def root(self, path: SandboxPath) -> Root:
        """The root that ``path`` is relative to."""
        return self._extra[path.root] if path.root else self.workspace

    def check_read(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what a deny rule covers. ``real`` is the real path, once that is known."""
        forms = self._forms(path, real)
        if self.deny is not None and self.deny.cover(forms):
            raise denied_error(path.shown)
        return forms

    def hides(self, names: Names) -> bool:
        """Whether a deny rule covers this path below the workspace."""
        return self.deny is not None and self.deny.cover(self._forms(SandboxPath(names), None))

    def check_write(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what may not be read, and what may not be written, moved or removed."""
        forms = self.check_read(path, real)
        if not self.workspace.writable:
            raise SandboxViolation("the workspace is read-only: nothing may be written, moved or removed")
        if not self.root(path).writable or (real is not None and not self._is_writable(real)):
            raise SandboxViolation(f"'{path.shown}' may not be changed: it is below a read-only root")
        if self._protected.cover(forms):
            raise SandboxViolation(f"'{path.shown}' is protected: it may not be written, moved or removed")
        return forms

    def check_move(self, path: SandboxPath, real: Names) -> None:
        """Refuse to move or remove a root, or a directory that contains one."""
        if any(names[: len(real)] == real for _, names in self._real_roots()):
            raise SandboxViolation(f"'{path.shown}' may not be moved or removed: it is a root or contains one")

    def covers_entry(self, folder: Forms, name: str) -> bool:
        """Whether ``name`` may not be moved, in a directory that may."""
        return self._protected.cover_entry(folder, name) or (
            self.deny is not None and self.deny.cover_entry(folder, name)
        )

    def listing_filter(self, path: SandboxPath, number: int) -> ListingFilter | None:
        """What a listing of the directory that was opened for ``path`` leaves out."""
        return None if self.deny is None else ListingFilter(self.deny, self.check_read(path, real_names(number)))

    def _forms(self, path: SandboxPath, real: Names | None) -> Forms:
        relative: set[Names] = {path.parts}
        absolute: set[Names] = {self.root(path).names + path.parts}
        if real is not None:
            around = [(root, real[len(names) :]) for root, names in self._real_roots() if real[: len(names)] == names]
            if not around:  # it was moved out of every root after it was opened
                raise outside_error(path.shown)
            relative.update(below for _, below in around)
            absolute.update((real, *(root.names + below for root, below in around)))
        return Forms(map(fold_all, relative), map(fold_all, absolute))

    def _is_writable(self, real: Names) -> bool:
        """The deepest root around it decides; of two equal ones, the read-only one."""
        around = [(len(names), not root.writable) for root, names in self._real_roots() if real[: len(names)] == names]
        return not max(around, default=(0, True))[1]

    def _real_roots(self) -> Iterator[tuple[Root, Names]]:
        """Looked up each time, because a root may be renamed while it is held open."""
        for root in (self.workspace, *self._extra.values()):
            yield root, real_names(root.number)


class ListingFilter:
    """The deny rules for the names in one directory."""

    __slots__ = ("_deny", "_folder")

    def __init__(self, deny: Globs, folder: Forms) -> None:
        self._deny: Final = deny
        self._folder: Final = folder

    def hides(self, name: str) -> bool:
        """Whether a deny rule covers the entry with this name."""
        return self._deny.cover_entry(self._folder, name)

    def below(self, name: str) -> ListingFilter:
        """The filter for the directory with this name, which is not hidden itself."""
        return ListingFilter(self._deny, self._folder.below(name))


def denied_error(shown: str) -> SandboxViolation:
    """The refusal of what a deny rule covers."""
    return SandboxViolation(f"'{shown}' may not be used: a deny rule matches it")
