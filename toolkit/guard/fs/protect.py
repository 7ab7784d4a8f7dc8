"""What may be read and what may be changed below the roots: deny rules, protected names, read-only roots.

Promise: every judgement is made twice, on the path as it was asked for and on the real place of the open directory
that holds the name, so neither a link nor ``..`` nor other letters for the same name get around it; what does not exist
yet is judged like what does.

Limit: a process that may rename things in the workspace can give a denied or protected file another name first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from toolkit.errors import SandboxViolation
from toolkit.guard.fs.deny_globs import Forms, Globs, fold_all
from toolkit.guard.fs.path import SandboxPath, outside
from toolkit.guard.fs.place import Descriptor, Names, real_names

# The second is what file systems with short names call the first.
ALWAYS_PROTECTED: Final = (".git", "git~1")


class Root(Descriptor):
    """A directory that is given to the tools, held open, with the absolute name it was given by."""

    __slots__ = ("name", "names", "writable")

    def __init__(self, number: int, name: str, *, writable: bool) -> None:
        super().__init__(number)
        self.name: Final = name
        self.names: Final[Names] = tuple(part for part in name.split("/") if part)
        self.writable: Final = writable


class Ground:
    """The roots, the workspace first, and what holds on them."""

    __slots__ = ("_extra", "_protected", "deny", "workspace")

    def __init__(self, workspace: Root, extra: Sequence[Root], protected: Globs, deny: Globs | None = None) -> None:
        self.workspace: Final = workspace
        self.deny: Final = deny
        self._extra: Final = {root.name: root for root in extra}
        self._protected: Final = protected

    def denied(self, globs: Sequence[str]) -> Ground:
        """The same with further deny rules."""
        before = self.deny.globs if self.deny else ()
        added = Globs(globs)
        deny = Globs((*before, *added.globs)) if before or added.globs else None
        return Ground(self.workspace, tuple(self._extra.values()), self._protected, deny)

    def root(self, path: SandboxPath) -> Root:
        """The root that ``path`` starts from."""
        return self._extra[path.root] if path.root else self.workspace

    def check_read(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what a deny rule covers; ``real`` is where the path leads, once that is known."""
        forms = self._forms(path, real)
        if self.deny is not None and self.deny.cover(forms):
            raise SandboxViolation(f"'{path.shown}' may not be used: a deny rule covers it")
        return forms

    def hides(self, names: Names) -> bool:
        """Whether a deny rule covers what goes by these names below the workspace."""
        return self.deny is not None and self.deny.cover(self._forms(SandboxPath(names), None))

    def check_write(self, path: SandboxPath, real: Names | None = None) -> Forms:
        """Refuse what may not be read, and what may not be written, moved or removed."""
        forms = self.check_read(path, real)
        if not self.workspace.writable:
            raise SandboxViolation("the workspace is read-only: nothing may be written, moved or removed")
        if not self.root(path).writable or (real is not None and not self._writable(real)):
            raise SandboxViolation(f"'{path.shown}' may not be changed: it lies below a read-only root")
        if self._protected.cover(forms):
            raise SandboxViolation(f"'{path.shown}' is protected: it may not be written, moved or removed")
        return forms

    def check_moved(self, path: SandboxPath, real: Names) -> None:
        """Refuse to move or remove a root, or a directory that holds one."""
        if any(names[: len(real)] == real for _, names in self._real_roots()):
            raise SandboxViolation(f"'{path.shown}' may not be moved or removed: it is or holds a root")

    def covers_entry(self, folder: Forms, name: str) -> bool:
        """Whether ``name`` may not be moved, in a directory that may."""
        return self._protected.cover_entry(folder, name) or (
            self.deny is not None and self.deny.cover_entry(folder, name)
        )

    def sight(self, path: SandboxPath, number: int) -> Sight | None:
        """What a listing of the directory that was opened for ``path`` leaves out."""
        return None if self.deny is None else Sight(self.deny, self.check_read(path, real_names(number)))

    def _forms(self, path: SandboxPath, real: Names | None) -> Forms:
        relative: set[Names] = {path.parts}
        absolute: set[Names] = {self.root(path).names + path.parts}
        if real is not None:
            around = [(root, real[len(names) :]) for root, names in self._real_roots() if real[: len(names)] == names]
            if not around:  # it was moved out of every root since it was opened
                raise outside(path.shown)
            relative.update(below for _, below in around)
            absolute.update((real, *(root.names + below for root, below in around)))
        return Forms(map(fold_all, relative), map(fold_all, absolute))

    def _writable(self, real: Names) -> bool:
        """The deepest root around it decides; of two equal ones the read-only one."""
        around = [(len(names), not root.writable) for root, names in self._real_roots() if real[: len(names)] == names]
        return not max(around, default=(0, True))[1]

    def _real_roots(self) -> Iterator[tuple[Root, Names]]:
        """Asked anew each time, as a root may be renamed while it is held open."""
        for root in (self.workspace, *self._extra.values()):
            yield root, real_names(root.number)


class Sight:
    """One directory under deny rules: what is left out of it."""

    __slots__ = ("_deny", "_folder")

    def __init__(self, deny: Globs, folder: Forms) -> None:
        self._deny: Final = deny
        self._folder: Final = folder

    def hides(self, name: str) -> bool:
        """Whether the entry of that name may not be seen."""
        return self._deny.cover_entry(self._folder, name)

    def below(self, name: str) -> Sight:
        """The same for the directory of that name, which is not hidden."""
        return Sight(self._deny, self._folder.below(name))
