"""Patterns that refuse: which paths a deny rule or a protected name covers.

Made to refuse too much rather than too little. Names are compared without regard to case, Unicode form and invisible
characters, as some file systems do, and without spaces and dots at their end, as others do. A pattern that could
not mean what it says is an error when it is given.

Time is linear in the pattern for every name: each ``*`` and ``**`` takes the first place where what follows it fits
and never tries another. Nothing is lost by that, as a later one can absorb whatever an earlier one leaves.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from toolkit.errors import SetupError

Spellings: TypeAlias = tuple[str, ...]
Folded: TypeAlias = tuple[Spellings, ...]

# Unicode's Default_Ignorable_Code_Point: two names that differ only in these are one to some file systems.
_IGNORED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Forms:
    """The names a path goes by, ready to be compared: relative to the roots it is below, and absolute."""

    __slots__ = ("absolute", "relative")

    def __init__(self, relative: Iterable[Folded], absolute: Iterable[Folded]) -> None:
        self.relative: Final = tuple(relative)
        self.absolute: Final = tuple(absolute)

    def below(self, name: str) -> Forms:
        """The same for ``name`` in that directory."""
        last = (fold(name),)
        return Forms([path + last for path in self.relative], [path + last for path in self.absolute])


class Globs:
    """Patterns with ``*``, ``?``, ``[...]`` and ``**``; each covers what it matches and everything below that.

    Without a slash a pattern matches a name at any depth; with one it starts at a root, and with one at its
    beginning it may be an absolute path as well. A backslash takes the next character as it is. There are no
    exceptions (``!``).

    >>> Globs([".env*", "keys/**"]).cover(Forms([fold_all(("app", ".ENV.local"))], []))
    True
    """

    def __init__(self, globs: Iterable[str]) -> None:
        if isinstance(globs, str):
            raise SetupError(f"patterns are a list of texts: write [{globs!r}]")
        self.globs: Final = tuple(globs)
        names: list[str] = []
        paths: list[_Path] = []
        absolute: list[_Path] = []
        for glob in self.globs:
            parts = _parts(glob)
            if "/" not in glob.rstrip("/"):
                names += _expressions(parts[0], glob)
                continue
            paths.append(_Path(parts, glob))
            if glob.startswith("/"):
                absolute.append(paths[-1])
        self._name: Final = _compiled(names) if names else None
        self._paths: Final = tuple(paths)
        self._absolute: Final = tuple(absolute)

    def cover(self, forms: Forms) -> bool:
        """Whether some pattern covers the path under one of its forms."""
        name = self._name
        if name is not None and any(_fits(name, one) for path in forms.relative for one in path):
            return True
        return self._cover_path(forms)

    def cover_entry(self, folder: Forms, name: str) -> bool:
        """Whether ``name`` is covered in a directory that is not."""
        if self._name is not None and _fits(self._name, fold(name)):
            return True
        return bool(self._paths) and self._cover_path(folder.below(name))

    def _cover_path(self, forms: Forms) -> bool:
        return any(one.leads_to(path) for one in self._paths for path in forms.relative) or any(
            one.leads_to(path) for one in self._absolute for path in forms.absolute
        )


class _Path:
    """A pattern over several names: groups of them with any number of directories between two groups."""

    __slots__ = ("_groups",)

    def __init__(self, parts: Sequence[str], glob: str) -> None:
        groups: list[list[re.Pattern[str]]] = [[]]
        for part in parts:
            if part == "**":
                groups.append([])
            else:
                groups[-1].append(_compiled(_expressions(part, glob)))
        self._groups = groups

    def leads_to(self, path: Folded) -> bool:
        """Whether ``path`` or a directory above it matches."""
        at = 0
        for number, group in enumerate(self._groups):
            last = len(path) - len(group) if number else 0
            for start in range(at, last + 1):
                names = path[start : start + len(group)]
                if len(names) == len(group) and all(map(_fits, group, names)):
                    at = start + len(group)
                    break
            else:
                return False
        return True


@functools.lru_cache(4096)  # most names come again, in the next path and in the other forms of this one
def fold(name: str) -> Spellings:
    """The spellings of a name that a pattern may match.

    >>> fold(".GIT"), fold(".g\\u200cit"), fold("notes. ")
    (('.git',), ('.g\\u200cit', '.git'), ('notes. ', 'notes'))
    """
    letters = _folded(name)
    bare = letters[-1].rstrip(" .")
    return tuple(dict.fromkeys((letters[0], bare))) if bare else letters


def fold_all(names: Iterable[str]) -> Folded:
    """``fold`` of each name of a path."""
    return tuple(map(fold, names))


def _folded(text: str) -> Spellings:
    """Once letter by letter, so that ``?`` stands for one of them, and once as Unicode says, where they differ."""
    if text.isascii():
        return (text.lower(),)
    composed = unicodedata.normalize("NFC", text)
    letters = "".join(low if len(low := letter.casefold()) == 1 else letter for letter in composed)
    visible = _IGNORED.sub("", unicodedata.normalize("NFD", text))
    return tuple(dict.fromkeys((letters, unicodedata.normalize("NFC", visible.casefold()))))


def _fits(pattern: re.Pattern[str], name: Spellings) -> bool:
    return any(map(pattern.fullmatch, name))


def _parts(glob: str) -> list[str]:
    if not isinstance(glob, str) or "\0" in glob:
        raise SetupError("a pattern must be text without NUL characters")
    if glob.startswith("!"):
        raise _wrong(glob, "has no exceptions; write '\\!' for a name that begins with '!'")
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise _wrong(glob, "must name something below the root")
    if parts[-1] == "**":
        parts[-1] = "*"  # what is below, not the directory itself; below that everything is covered anyway
    return parts


def _wrong(glob: str, words: str) -> SetupError:
    return SetupError(f"the pattern {glob!r} {words}")


def _compiled(expressions: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(expressions), re.DOTALL)


def _expressions(part: str, glob: str) -> list[str]:
    return [_expression(spelling, glob) for spelling in _folded(part)]


def _expression(part: str, glob: str) -> str:
    """A regular expression for one name, in which no step is tried a second time."""
    chunks = [""]  # what stands between two stars
    at = 0
    while at < len(part):
        letter = part[at]
        at += 1
        if letter == "*":
            chunks.append("")
        elif letter == "?":
            chunks[-1] += "."
        elif letter == "[":
            choice, at = _choice(part, at, glob)
            chunks[-1] += choice
        else:
            if letter == "\\":
                if at == len(part):
                    raise _wrong(glob, "ends a name with a backslash")
                letter = part[at]
                at += 1
            chunks[-1] += re.escape(letter)
    first, *others = chunks
    if not others:
        return first
    return first + "".join(f"(?>.*?{chunk})" for chunk in others[:-1]) + ".*" + others[-1]


def _choice(part: str, at: int, glob: str) -> tuple[str, int]:
    """The letters of ``[...]`` that begins before ``at``, as an expression, and where its end is."""
    negated = part[at : at + 1] in ("!", "^")
    at += negated
    end = part.find("]", at + 1)  # the first letter may be a bracket itself
    if end < 0:
        raise _wrong(glob, "opens a '[' that is not closed; write '\\[' for a bracket")
    letters = part[at:end]
    if "\\" in letters or "[:" in letters:
        raise _wrong(glob, "may hold only letters and ranges between '[' and ']'")
    pieces: list[str] = []
    while letters:
        low, high = letters[0], letters[2:3]
        if letters[1:2] != "-" or not high:
            pieces.append(re.escape(low))
            letters = letters[1:]
            continue
        if low > high:
            raise _wrong(glob, f"holds the range {low}-{high}, which is empty")
        pieces.append(f"{re.escape(low)}-{re.escape(high)}")
        letters = letters[3:]
    return f"[{'^' if negated else ''}{''.join(pieces)}]", end + 1
