"""What a call may touch before anybody has approved it, and what an approval adds.

Promise: the rules are judged on the opened object, as deny rules are: on the path as it was requested and on its real path.
So a link, ``..``, a walk, a patch or a race reaches nothing that the call was not allowed or approved to touch. An approval
of a path covers its real place and what is below it, for one call and for the rules that concern that path.

Limit: a process that may rename things in the workspace can give a file another name first, as with deny rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolkit.errors import SandboxViolation

if TYPE_CHECKING:
    from toolkit.guard.files.consent import Forms, Globs
    from toolkit.guard.fs.place import Names

# Stands for the entries of a directory: a rule that covers this name there covers whatever is in it.
_ANY_ENTRY: Final = "\0"


class RealPath(NamedTuple):
    """A path without links, in the forms that allow rules compare.

    ``below`` are the names below each root around it, the workspace first if ``in_workspace``. ``absolute`` are the names
    from the root of the file system, by the real names of the roots and by those they were given by.
    """

    in_workspace: bool
    below: tuple[Names, ...]
    absolute: tuple[Names, ...]


class LocatedPath(NamedTuple):
    """Where a path that a call names leads, before the call runs."""

    text: str
    forms: Forms
    """Its names as written and, if it was found, its real names."""
    is_written: bool
    real: RealPath | None = None
    """What it leads to; None if it leads nowhere or out of the roots, so that no allow rule covers it."""
    places: tuple[Names, ...] = ()
    """The real path of the name itself and, if that is a link, of what it leads to."""
    is_directory: bool = False
    shown: str = ""
    """How an approver sees the real path, if that differs from the path as written."""
    identity: str = ""
    """Changes when the file, its directory or the way to it is replaced by another one."""


Allows: TypeAlias = Callable[[RealPath], bool]


class AskRule:
    """Places that a call touches, or only changes, after approval. ``because`` says why, as part of a sentence."""

    __slots__ = ("because", "globs", "only_writes")

    def __init__(self, globs: Globs, because: str, only_writes: bool = False) -> None:
        self.globs: Final = globs
        self.because: Final = because
        self.only_writes: Final = only_writes

    def concerns(self, path: LocatedPath) -> bool:
        """Whether a call that names this path needs approval. Concerns a directory if it covers all that is in it."""
        if self.only_writes and not path.is_written:
            return False
        return self.globs.cover(path.forms) or (path.is_directory and self.globs.cover(path.forms.below(_ANY_ENTRY)))


class Consent:
    """The ask rules for one call, what allow rules leave it (None: everything), and what was approved for it."""

    __slots__ = ("_allows", "_approved", "_asked", "concerns_reads", "rules")

    def __init__(
        self,
        rules: Iterable[AskRule],
        allows: Allows | None = None,
        approved: tuple[Names, ...] = (),
        asked: Mapping[AskRule, tuple[Names, ...]] | None = None,
    ) -> None:
        self.rules: Final = tuple(rules)
        self.concerns_reads: Final = allows is not None or any(not rule.only_writes for rule in self.rules)
        self._allows: Final = allows
        self._approved: Final = approved
        self._asked: Final = asked or {}

    def approve(self, paths: Iterable[LocatedPath]) -> Consent:
        """The same for a call that was approved as it named these paths."""
        named = tuple(paths)
        asked = {
            rule: tuple(place for path in named if rule.concerns(path) for place in path.places) for rule in self.rules
        }
        return Consent(self.rules, self._allows, tuple(place for path in named for place in path.places), asked)

    def check(
        self, forms: Forms, place: Names, real_path: Callable[[Names], RealPath], shown: str, *, writes: bool
    ) -> None:
        """Refuse what this call may not touch. ``place`` is the real path of what is about to be opened or changed."""
        for rule in self.rules:
            if (writes or not rule.only_writes) and rule.globs.cover(forms) and not self.is_approved(rule, place):
                raise approval_error(shown, rule)
        if self._allows is not None and not _is_below(place, self._approved) and not self._allows(real_path(place)):
            raise SandboxViolation(
                f"'{shown}' may not be used: no allow rule covers it, and it was not approved for this call;"
                " call the tool with that path"
            )

    def hides(self, forms: Forms, place: Names, real_path: Callable[[Names], RealPath]) -> bool:
        """Whether this call may not even list the path."""
        try:
            self.check(forms, place, real_path, "", writes=False)
        except SandboxViolation:
            return True
        return False

    def is_approved(self, rule: AskRule, place: Names) -> bool:
        """Whether the place is covered by an approval of a path that the rule concerns."""
        return _is_below(place, self._asked.get(rule, ()))

    def rule_for_entry(self, folder: Forms, place: Names, name: str, *, writes: bool) -> AskRule | None:
        """The rule by which ``name`` may not be used in a directory that may; ``place`` is that directory."""
        for rule in self.rules:
            if (
                (writes or not rule.only_writes)
                and rule.globs.cover_entry(folder, name)
                and not self.is_approved(rule, (*place, name))
            ):
                return rule
        return None


def approval_error(shown: str, rule: AskRule) -> SandboxViolation:
    """The refusal of what needs an approval that this call does not have."""
    return SandboxViolation(
        f"'{shown}' needs approval: {rule.because}; call the tool with that path, so that it can be approved"
    )


def _is_below(place: Names, tops: Iterable[Names]) -> bool:
    return any(place[: len(top)] == top for top in tops)
