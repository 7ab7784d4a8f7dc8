"""Patterns as in a ``.gitignore`` file, with git's own meaning, matched in time linear in the pattern and the name.

Everything is bytes, as it is for git: ``?`` stands for one byte, and a list in any encoding can be read. Patterns
become regular expressions in which every step is atomic. Each ``*`` and ``**`` takes the first place where what
follows it fits and never tries another: a later wildcard can absorb whatever an earlier one leaves, so nothing is
lost, and ``*a*a*a*b`` cannot make the matcher try every way to split a name.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller
from typing import Final, NamedTuple

DIRECTORY: Final = b"\0"
"""Stands behind the name of a directory; a slash there would let ``a/**`` match ``a`` itself."""

# The kernel takes no longer path.
_MAX_PATTERN_BYTES: Final = 4096

# So many endings are compared one by one; of more, what follows the last dot is looked up first.
_FEW: Final = 8

_IN_NAME: Final = rb"[^/\0]"
_SOME_FOLDERS: Final = rb"(?:[^/\0]*/)*?"
_A_FOLDER_AT_LEAST: Final = rb"(?:[^/\0]*/)+?"
_ALL_BELOW: Final = rb"[^\0]*"

_ANY_BYTE: Final = frozenset(range(256))
_NEVER_CHOSEN: Final = frozenset(b"/\0")
_SPECIAL: Final = b"*?[\\"

# Nothing but letters, perhaps with a star before or behind them, perhaps with a choice of letters as in `.py[co]`.
_SIMPLE_NAME: Final = re.compile(rb"(\*?)([^*?\[\\]+)(?:(\[[A-Za-z0-9]+\])([^*?\[\\]*))?(\*?)")

_CLASSES: Final[dict[bytes, frozenset[int]]] = {
    b"alpha": frozenset(string.ascii_letters.encode()),
    b"digit": frozenset(b"0123456789"),
    b"alnum": frozenset((string.ascii_letters + string.digits).encode()),
    b"upper": frozenset(string.ascii_uppercase.encode()),
    b"lower": frozenset(string.ascii_lowercase.encode()),
    b"xdigit": frozenset(string.hexdigits.encode()),
    b"punct": frozenset(string.punctuation.encode()),
    b"space": frozenset(b" \t\n\r"),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"print": frozenset(range(0x20, 0x7F)),
    b"graph": frozenset(range(0x21, 0x7F)),
}


class Patterns:
    """The patterns of one file or argument: the last one that matches decides.

    >>> Patterns([b"*.o", b"!keep.o"]).decide(b"a.o", b"", lambda: b"src/")
    True
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        parsed = [pattern for line in lines if (pattern := parse(line)) is not None]
        self._last_first = [(one.name.test(), one) for one in reversed(parsed)]
        shapes = [one.name for one in parsed]
        self._names = _texts(shape.whole for shape in shapes)
        self._endings = tuple(_texts(shape.ending for shape in shapes))
        self._dotted = {_ending(text) for text in self._endings}
        self._beginnings = tuple(_texts(shape.beginning for shape in shapes))
        self._others_by_name = _any_of(one.regex for one in parsed if one.name == ANY_NAME and not one.on_path)
        self._others_by_path = _any_of(one.regex for one in parsed if one.name == ANY_NAME and one.on_path)
        self.look_at_paths: Final = self._others_by_path is not None
        """Whether ``suspects`` needs to know the way."""

    def suspects(self, names: list[str], way: bytes, mark: bytes) -> list[str]:
        """Those of the raw names that some pattern may match: most look like none, and that is quickly told.

        ``way`` leads from where the patterns stand to their directory, and ``mark`` stands behind each name.
        """
        found = list(self._names.intersection(names))
        if len(self._endings) > _FEW:
            found += [name for name in names if name[name.rfind(".") :] in self._dotted]
        elif self._endings:
            found += [name for name in names if name.endswith(self._endings)]
        if self._beginnings:
            found += [name for name in names if name.startswith(self._beginnings)]
        if self._others_by_name is not None:
            found += [name for name in names if self._others_by_name(raw_bytes(name) + mark)]
        if self._others_by_path is not None:
            found += [name for name in names if self._others_by_path(way + raw_bytes(name) + mark)]
        return found

    def decide(self, name: bytes, mark: bytes, way: Callable[[], bytes]) -> bool | None:
        """Whether to leave it out; None if no pattern matches. ``way`` gives the way, ``mark`` is as above."""
        for may_fit, one in self._last_first:
            if may_fit(name) and one.matches(way() + name + mark if one.on_path else name + mark):
                return not one.negated
        return None


def raw_bytes(name: str) -> bytes:
    """A raw name as the file system has it."""
    return name.encode("utf-8", "surrogateescape")


def _any_of(expressions: Iterable[bytes]) -> Callable[[bytes], object] | None:
    joined = b"|".join(expressions)
    return re.compile(joined).match if joined else None


def _texts(some: Iterable[Iterable[bytes]]) -> set[str]:
    return {one.decode("utf-8", "surrogateescape") for several in some for one in several}


def _ending(name: str) -> str:
    """What follows the last dot, with it; without a dot the last letter."""
    return name[name.rfind(".") :]


class NameShape(NamedTuple):
    """What a name must look like for a pattern to match: one of these as a whole, at its end or at its beginning."""

    whole: tuple[bytes, ...] = ()
    ending: tuple[bytes, ...] = ()
    beginning: tuple[bytes, ...] = ()

    def test(self) -> Callable[[bytes], object]:
        """What tells whether a name looks like that."""
        if self.whole:
            return frozenset(self.whole).__contains__
        return (
            methodcaller("endswith", self.ending) if self.ending else methodcaller("startswith", self.beginning or b"")
        )


ANY_NAME: Final = NameShape()


@dataclass(frozen=True)
class Pattern:
    """One line: matched against the name alone, or against the whole path when it holds a slash."""

    regex: bytes
    on_path: bool
    negated: bool
    name: NameShape

    @cached_property
    def matches(self) -> Callable[[bytes], object]:
        return re.compile(self.regex).match


def parse(line: bytes) -> Pattern | None:
    """A line without its line feed; None if it is empty, a comment or something that can match nothing."""
    if line.startswith(b"#") or len(line) > _MAX_PATTERN_BYTES:
        return None
    text = _trimmed(line.removesuffix(b"\r").partition(b"\0")[0])
    negated = text.startswith(b"!")
    glob = text[negated:]
    only_directories = glob.endswith(b"/")
    glob = glob[: len(glob) - only_directories]
    on_path = b"/" in glob
    regex = _translate(glob.removeprefix(b"/"), on_path=on_path) if glob else None
    if regex is None:
        return None
    return Pattern(regex + (rb"\0\Z" if only_directories else rb"\0?\Z"), on_path, negated, _name_shape(glob))


def _name_shape(glob: bytes) -> NameShape:
    *above, last = glob.split(b"/")
    if any(b"**" in part and part != b"**" for part in above):
        return ANY_NAME  # behind `a**/` a name may begin with what stands before it
    found = _SIMPLE_NAME.fullmatch(last)
    if found is None:
        return ANY_NAME
    star, text, letters, rest, last_star = found.groups()
    texts = tuple(text + bytes([letter]) + rest for letter in letters[1:-1]) if letters else (text,)
    if star and last_star:
        return ANY_NAME
    if last_star:
        return NameShape(beginning=texts)
    if not star:
        return NameShape(whole=texts)
    # The last dot, or the last letter, must be that of the pattern.
    return NameShape(ending=texts) if all(b"." in one for one in texts) else ANY_NAME


def _trimmed(line: bytes) -> bytes:
    """Without spaces at the end, unless a backslash stands before them."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


class _Builder:
    """Puts an expression together: groups of names split by ``**``, each made of chunks split by ``*``."""

    def __init__(self) -> None:
        self._done = b""
        self._opener = b""
        self._chunks = [b""]

    def add(self, piece: bytes) -> None:
        self._chunks[-1] += piece

    def star(self) -> None:
        self._chunks.append(b"")

    def folders(self, opener: bytes) -> None:
        """Closes a group. It spans a fixed number of names, so the first place where it fits ends first."""
        self._done += b"(?>%b%b)" % (self._opener, self._first_fit(self._chunks))
        self._opener, self._chunks = opener, [b""]

    def finished(self) -> bytes:
        *before, last = self._chunks
        if not before:
            return self._done + self._opener + last
        return self._done + self._opener + self._first_fit(before) + _IN_NAME + b"*" + last

    @staticmethod
    def _first_fit(chunks: list[bytes]) -> bytes:
        first, *rest = chunks
        return first + b"".join(b"(?>%b*?%b)" % (_IN_NAME, chunk) for chunk in rest)


def _translate(glob: bytes, *, on_path: bool) -> bytes | None:
    """The expression for a pattern, without its end; None if nothing can match it."""
    built = _Builder()
    at = 0
    while at < len(glob):
        letter = glob[at : at + 1]
        if letter == b"*":
            at = _add_stars(built, glob, at, on_path=on_path)
            continue
        if letter == b"?":
            built.add(_IN_NAME)
        elif letter == b"[":
            found = _bracket(glob, at)
            if found is None:
                return None
            piece, at = found
            built.add(piece)
        else:
            if letter == b"\\":
                at += 1
                if at == len(glob):
                    return None
            built.add(re.escape(glob[at : at + 1]))
        at += 1
    return built.finished()


def _add_stars(built: _Builder, glob: bytes, at: int, *, on_path: bool) -> int:
    """One star or several, and the slash that belongs to ``**/``; gives the place behind them."""
    rest = glob[at:].lstrip(b"*")
    end = len(glob) - len(rest)
    # git strips a plain beginning off before it looks for `**`, so `a**/b` counts as well, against its manual.
    alone = at == 0 or glob[at - 1 : at] == b"/" or not any(letter in _SPECIAL for letter in glob[:at])
    if not (on_path and alone and end - at > 1):
        built.star()
        return end
    if not rest:
        built.folders(b"")
        built.add(_ALL_BELOW)
        return end
    if rest.startswith(b"/"):
        built.folders(_SOME_FOLDERS)
        return end + 1
    if rest.startswith(b"\\/"):
        built.folders(_A_FOLDER_AT_LEAST)
        return end + 2
    built.star()
    return end


def _bracket(glob: bytes, start: int) -> tuple[bytes, int] | None:
    """The bytes that ``[...]`` stands for, as an expression, and where its end is; None if it can match nothing."""
    at = start + 1
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    chosen: set[int] = set()
    low: int | None = None  # what a range would start from
    first = True
    while first or glob[at : at + 1] != b"]":
        first = False
        found = _bracket_item(glob, at, low)
        if found is None:
            return None
        some, low, at = found
        chosen |= some
    wanted = (_ANY_BYTE - chosen if negated else chosen) - _NEVER_CHOSEN
    if not wanted:
        return None
    return b"[%b]" % b"".join(b"\\x%02x" % byte for byte in sorted(wanted)), at


def _bracket_item(glob: bytes, at: int, low: int | None) -> tuple[Set[int], int | None, int] | None:
    """One letter, range or class: its bytes, what a range may start from behind it, and where to go on."""
    letter = glob[at : at + 1]
    if letter == b"-" and low is not None and glob[at + 1 : at + 2] not in (b"", b"]"):
        at += 1 + (glob[at + 1 : at + 2] == b"\\")
        return None if at >= len(glob) else ({*range(low, glob[at] + 1)}, None, at + 1)
    if letter == b"[" and glob[at + 1 : at + 2] == b":":
        end = glob.find(b"]", at + 2)
        if end < 0:
            return None
        if end > at + 2 and glob[end - 1 : end] == b":":
            known = _CLASSES.get(glob[at + 2 : end - 1])
            return None if known is None else (known, None, end + 1)
    at += letter == b"\\"
    return None if at >= len(glob) else ({glob[at]}, glob[at], at + 1)
