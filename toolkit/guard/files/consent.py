"""Glob patterns of deny rules and protected names: which paths they cover.

They cover too much rather than too little. Names are compared without regard to case, Unicode form and invisible
characters, as some file systems do, and without spaces and dots at their end, as others do. A pattern that cannot mean
what it says is refused when it is given.

Time is linear in the pattern for every name: each ``*`` and ``**`` takes the first position where the rest fits and never
tries another. No match is lost by that, because a later star can absorb whatever an earlier one leaves.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.files.path import split_names

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
    """A pattern of several names: groups of names, with any number of directories between two groups."""

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
