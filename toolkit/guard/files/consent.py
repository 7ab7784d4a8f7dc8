"""Rules about paths: what a call may touch before anybody has approved it, what an approval adds, and the patterns of both.

Promise: the rules are judged on the opened object, as deny rules are: on the path as it was requested and on its real path.
So a link, ``..``, a walk, a patch or a race reaches nothing that the call was not allowed or approved to touch. An approval
of a path covers its real place and what is below it, for one call and for the rules that concern that path.

Limit: a process that may rename things in the workspace can give a file another name first, as with deny rules.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolkit.errors import SandboxViolation, SetupError
from toolkit.guard.files.path import split_names

if TYPE_CHECKING:
    from toolkit.guard.files.place import Names


# Stands for the entries of a directory: a rule that covers this name there covers whatever is in it.
ANY_ENTRY: Final = "\0"


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

    @property
    def name(self) -> str | None:
        """The real path as records name it, as ``SandboxFS.name_real`` does."""
        if self.real is None:
            return None
        below = self.real.in_workspace
        return name_place(self.real.below[0] if below else self.places[-1], below, self.is_directory)


def name_place(names: Names, in_workspace: bool, is_directory: bool) -> str:
    """A real path as records name it: from the workspace on, or absolute; with a slash at the end of a directory."""
    text = "/".join(names) if in_workspace else "/".join(("", *names))
    return f"{text or '.'}/" if is_directory else text


def read_place(name: str, *, is_written: bool, leads_nowhere: bool = False) -> LocatedPath:
    """The place that a record names, for rules that are judged without the files."""
    names, in_workspace = tuple(split_names(name)), not name.startswith("/")
    forms = Forms([fold_all(names)], () if in_workspace else [fold_all(names)])
    if leads_nowhere:
        return LocatedPath(name, forms, is_written)
    real = RealPath(in_workspace, (names,), () if in_workspace else (names,))
    return LocatedPath(name, forms, is_written, real, (names,), is_directory=name.endswith("/"))


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
        return self.globs.cover(path.forms) or (path.is_directory and self.globs.cover(path.forms.below(ANY_ENTRY)))


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


class PathLimit(NamedTuple):
    """A pattern, as in deny rules, that binds commands, and the rule that it is from, in words.

    ``hides``: else what it covers only may not be changed. ``asks``: the approval of a call lifts it for the paths that the
    call names.
    """

    pattern: str
    because: str
    hides: bool = True
    asks: bool = False


def approval_error(shown: str, rule: AskRule) -> SandboxViolation:
    """The refusal of what needs an approval that this call does not have."""
    return SandboxViolation(
        f"'{shown}' needs approval: {rule.because}; call the tool with that path, so that it can be approved"
    )


def _is_below(place: Names, tops: Iterable[Names]) -> bool:
    return any(place[: len(top)] == top for top in tops)


# -- patterns ----------------------------------------------------------------------------------------------------------

Spellings: TypeAlias = tuple[str, ...]
Folded: TypeAlias = tuple[Spellings, ...]

# Unicode's Default_Ignorable_Code_Point: to some file systems, names that differ only in these are the same.
_IGNORED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Forms:
    """All names of one path, ready to be compared: relative to the roots it is below, and absolute."""

    __slots__ = ("absolute", "relative")

    def __init__(self, relative: Iterable[Folded], absolute: Iterable[Folded]) -> None:
        self.relative: Final = tuple(relative)
        self.absolute: Final = tuple(absolute)

    def below(self, name: str) -> Forms:
        """The forms of ``name`` in that directory."""
        last = (fold(name),)
        return Forms([path + last for path in self.relative], [path + last for path in self.absolute])


class Globs:
    """Patterns with ``*``, ``?``, ``[...]`` and ``**``. Each covers what it matches and everything below that.

    They cover too much rather than too little. Names are compared without regard to case, Unicode form and invisible
    characters, as some file systems do, and without spaces and dots at their end, as others do. A pattern that cannot
    mean what it says is refused when it is given.

    A pattern without a slash matches a name at any depth. With a slash it starts at a root; if it begins with a slash,
    it may also be an absolute path. A backslash takes the next character literally. There are no exceptions (``!``).

    >>> Globs([".env*", "keys/**"]).cover(Forms([fold_all(("app", ".ENV.local"))], []))
    True
    """

    def __init__(self, globs: Iterable[str]) -> None:
        if isinstance(globs, str):
            raise SetupError(f"patterns must be a list of strings: write [{globs!r}]")
        self.globs: Final = tuple(globs)
        names: list[str] = []
        paths: list[_PathPattern] = []
        absolute: list[_PathPattern] = []
        for glob in self.globs:
            parts = _split_pattern(glob)
            if "/" not in glob.rstrip("/"):
                names += _to_expressions(parts[0], glob)
                continue
            paths.append(_PathPattern(parts, glob))
            if glob.startswith("/"):
                absolute.append(paths[-1])
        self._name: Final = _compile(names) if names else None
        self._paths: Final = tuple(paths)
        self._absolute: Final = tuple(absolute)

    def cover(self, forms: Forms) -> bool:
        """Whether a pattern covers the path in any of its forms."""
        name = self._name
        if name is not None and any(_matches(name, one) for path in forms.relative for one in path):
            return True
        return self.cover_by_path(forms)

    def cover_entry(self, folder: Forms, name: str) -> bool:
        """Whether ``name`` is covered in a directory that is not covered itself."""
        if self._name is not None and _matches(self._name, fold(name)):
            return True
        return bool(self._paths) and self.cover_by_path(folder.below(name))

    def cover_by_path(self, forms: Forms) -> bool:
        """Whether a pattern with a slash covers the path."""
        return any(one.covers(path) for one in self._paths for path in forms.relative) or any(
            one.covers(path) for one in self._absolute for path in forms.absolute
        )


class _PathPattern:
    """A pattern of several names: groups of names, with any number of directories between two groups.

    Time is linear in the pattern for every path: each ``*`` and ``**`` takes the first position where the rest fits and
    never tries another. No match is lost by that, because a later star can absorb whatever an earlier one leaves.
    """

    __slots__ = ("_groups",)

    def __init__(self, parts: Sequence[str], glob: str) -> None:
        groups: list[list[re.Pattern[str]]] = [[]]
        for part in parts:
            if part == "**":
                groups.append([])
            else:
                groups[-1].append(_compile(_to_expressions(part, glob)))
        self._groups = groups

    def covers(self, path: Folded) -> bool:
        """Whether ``path`` or a directory above it matches."""
        at = 0
        for number, group in enumerate(self._groups):
            last = len(path) - len(group) if number else 0
            for start in range(at, last + 1):
                names = path[start : start + len(group)]
                if len(names) == len(group) and all(map(_matches, group, names)):
                    at = start + len(group)
                    break
            else:
                return False
        return True


@functools.lru_cache(4096)  # most names occur again, in the next path and in the other forms of this one
def fold(name: str) -> Spellings:
    """The spellings of a name that a pattern may match.

    >>> fold(".GIT"), fold(".g\\u200cit"), fold("notes. ")
    (('.git',), ('.g\\u200cit', '.git'), ('notes. ', 'notes'))
    """
    letters = _fold_text(name)
    bare = letters[-1].rstrip(" .")
    return tuple(dict.fromkeys((letters[0], bare))) if bare else letters


def fold_all(names: Iterable[str]) -> Folded:
    """``fold`` for each name of a path."""
    return tuple(map(fold, names))


def _fold_text(text: str) -> Spellings:
    """Folded letter by letter, so that ``?`` stands for one letter, and as Unicode defines it, where the two differ."""
    if text.isascii():
        return (text.lower(),)
    composed = unicodedata.normalize("NFC", text)
    letters = "".join(low if len(low := letter.casefold()) == 1 else letter for letter in composed)
    visible = _IGNORED.sub("", unicodedata.normalize("NFD", text))
    return tuple(dict.fromkeys((letters, unicodedata.normalize("NFC", visible.casefold()))))


def _matches(pattern: re.Pattern[str], name: Spellings) -> bool:
    return any(map(pattern.fullmatch, name))


def escape_pattern(path: str) -> str:
    """The pattern that covers exactly this path.

    >>> escape_pattern("/ws/[a]*")
    '/ws/\\\\[a]\\\\*'
    """
    return re.sub(r"([\\*?\[!])", r"\\\1", path)


def _split_pattern(glob: str) -> list[str]:
    if not isinstance(glob, str) or "\0" in glob:
        raise SetupError("a pattern must be a string without NUL characters")
    if glob.startswith("!"):
        raise _pattern_error(glob, "begins with '!', but there are no exceptions; write '\\!' for such a name")
    if not glob:
        raise SetupError("a pattern must not be empty; write, for example, 'secrets/**'")
    parts = split_names(glob)
    if not parts or ".." in parts:
        raise _pattern_error(glob, "must match something below the root; write it without '..', such as 'secrets/**'")
    if parts[-1] == "**":
        parts[-1] = "*"  # the entries, not the directory itself; everything below an entry is covered anyway
    return parts


def _pattern_error(glob: str, problem: str) -> SetupError:
    return SetupError(f"the pattern {glob!r} {problem}")


def _compile(expressions: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(expressions), re.DOTALL)


def _to_expressions(part: str, glob: str) -> list[str]:
    return [_to_expression(spelling, glob) for spelling in _fold_text(part)]


def _to_expression(part: str, glob: str) -> str:
    """A regular expression for one name that never tries a star twice."""
    chunks = [""]  # the text between two stars
    at = 0
    while at < len(part):
        letter = part[at]
        at += 1
        if letter == "*":
            chunks.append("")
        elif letter == "?":
            chunks[-1] += "."
        elif letter == "[":
            choice, at = _read_choice(part, at, glob)
            chunks[-1] += choice
        else:
            if letter == "\\":
                if at == len(part):
                    raise _pattern_error(glob, "ends a name with a backslash; write '\\\\' for a backslash")
                letter = part[at]
                at += 1
            chunks[-1] += re.escape(letter)
    first, *others = chunks
    if not others:
        return first
    return first + "".join(f"(?>.*?{chunk})" for chunk in others[:-1]) + ".*" + others[-1]


def _read_choice(part: str, at: int, glob: str) -> tuple[str, int]:
    """The ``[...]`` whose bracket is just before ``at``, as a regular expression, and the position after it."""
    negated = part[at : at + 1] in ("!", "^")
    at += negated
    end = part.find("]", at + 1)  # the first letter may be a bracket itself
    if end < 0:
        raise _pattern_error(glob, "has a '[' that is not closed; write '\\[' for a bracket")
    letters = part[at:end]
    if "\\" in letters or "[:" in letters:
        raise _pattern_error(glob, "may contain only letters and ranges between '[' and ']'")
    pieces: list[str] = []
    while letters:
        low, high = letters[0], letters[2:3]
        if letters[1:2] != "-" or not high:
            pieces.append(re.escape(low))
            letters = letters[1:]
            continue
        if low > high:
            raise _pattern_error(glob, f"contains the range {low}-{high}, which is empty")
        pieces.append(f"{re.escape(low)}-{re.escape(high)}")
        letters = letters[3:]
    return f"[{'^' if negated else ''}{''.join(pieces)}]", end + 1
