"""Patterns of ``.gitignore`` files, with git's meaning, matched in time linear in the pattern and the name.

Everything is bytes, as in git: ``?`` matches one byte, and files in any encoding can be read. Patterns become regular
expressions in which every step is atomic. Each ``*`` and ``**`` takes the first place where the rest fits and never tries
another: a later wildcard can absorb whatever an earlier one leaves, so nothing is lost, and ``*a*a*a*b`` cannot cause
backtracking. (pathspec reads many patterns differently from git and can take exponential time. Tests compare this module
with ``git check-ignore``.)
"""

from __future__ import annotations

import codecs
import re
import string
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from operator import methodcaller
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.errors import SandboxViolation, ToolFailed

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.handles import EntryNames, SandboxDir


DIRECTORY: Final = b"\0"
"""Appended to the name of a directory; a slash would let ``a/**`` match ``a`` itself."""

# The longest path the kernel accepts.
_MAX_PATTERN_BYTES: Final = 4096

# Up to this many endings are compared one by one; with more, the part after the last dot is looked up first.
_FEW: Final = 8

_IN_NAME: Final = rb"[^/\0]"
_SOME_FOLDERS: Final = rb"(?:[^/\0]*/)*?"
_AT_LEAST_ONE_FOLDER: Final = rb"(?:[^/\0]*/)+?"
_ALL_BELOW: Final = rb"[^\0]*"

_ANY_BYTE: Final = frozenset(range(256))
_NEVER_MATCHED: Final = frozenset(b"/\0")
_SPECIAL: Final = b"*?[\\"

# Plain text, optionally with a star at either end, or with a simple set as in `.py[co]`.
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
    """The patterns of one file or argument; the last one that matches decides.

    >>> Patterns([b"*.o", b"!keep.o"]).decide(b"a.o", b"", lambda: b"src/")
    True
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        parsed = [pattern for line in lines if (pattern := parse_pattern(line)) is not None]
        self._last_first = [(one.name.test(), one) for one in reversed(parsed)]
        shapes = [one.name for one in parsed]
        self._names = _decode_all(shape.whole for shape in shapes)
        self._endings = tuple(_decode_all(shape.ending for shape in shapes))
        self._dotted = {_ending(text) for text in self._endings}
        self._beginnings = tuple(_decode_all(shape.beginning for shape in shapes))
        self._others_by_name = _compile_any(one.regex for one in parsed if one.name == ANY_NAME and not one.on_path)
        self._others_by_path = _compile_any(one.regex for one in parsed if one.name == ANY_NAME and one.on_path)
        self.look_at_paths: Final = self._others_by_path is not None
        """Whether ``suspects`` needs ``way``."""

    def suspects(self, names: list[str], way: bytes, mark: bytes) -> list[str]:
        """The raw names that some pattern may match; most names are ruled out here.

        ``way`` is the path from the directory of the patterns to that of the names; ``mark`` is appended to each name.
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
        """Whether to leave the name out; None if no pattern matches. ``way()`` and ``mark`` are as in ``suspects``."""
        for may_fit, one in self._last_first:
            if may_fit(name) and one.matches(way() + name + mark if one.on_path else name + mark):
                return not one.negated
        return None


def raw_bytes(name: str) -> bytes:
    """A raw name as the bytes of the file system."""
    return name.encode("utf-8", "surrogateescape")


def _compile_any(expressions: Iterable[bytes]) -> Callable[[bytes], object] | None:
    joined = b"|".join(expressions)
    return re.compile(joined).match if joined else None


def _decode_all(some: Iterable[Iterable[bytes]]) -> set[str]:
    return {one.decode("utf-8", "surrogateescape") for several in some for one in several}


def _ending(name: str) -> str:
    """The part from the last dot on; the last letter if there is no dot."""
    return name[name.rfind(".") :]


class NameShape(NamedTuple):
    """What a name must look like for a pattern to match: equal to one of these, or ending or starting with one.

    Looking names up instead of matching every pattern keeps a long ``.gitignore`` fast: with thousands of lines, a walk
    would take ten times as long.
    """

    whole: tuple[bytes, ...] = ()
    ending: tuple[bytes, ...] = ()
    beginning: tuple[bytes, ...] = ()

    def test(self) -> Callable[[bytes], object]:
        """A function that tests whether a name has this shape."""
        if self.whole:
            return frozenset(self.whole).__contains__
        return (
            methodcaller("endswith", self.ending) if self.ending else methodcaller("startswith", self.beginning or b"")
        )


ANY_NAME: Final = NameShape()


@dataclass(frozen=True)
class Pattern:
    """One line; matched against the name alone, or against the whole path if it contains a slash."""

    regex: bytes
    on_path: bool
    negated: bool
    name: NameShape

    @cached_property
    def matches(self) -> Callable[[bytes], object]:
        return re.compile(self.regex).match


def parse_pattern(line: bytes) -> Pattern | None:
    """The pattern of a line without its line feed; None if it is empty, a comment or cannot match anything."""
    if line.startswith(b"#") or len(line) > _MAX_PATTERN_BYTES:
        return None
    text = _trim(line.removesuffix(b"\r").partition(b"\0")[0])
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
        return ANY_NAME  # after `a**/` a name may start with the text before it
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
    # The last dot, or the last letter, must come from the pattern.
    return NameShape(ending=texts) if all(b"." in one for one in texts) else ANY_NAME


def _trim(line: bytes) -> bytes:
    """The line without trailing spaces, unless they are escaped."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


class _RegexBuilder:
    """Builds an expression: groups of names separated by ``**``, each made of chunks separated by ``*``."""

    def __init__(self) -> None:
        self._done = b""
        self._opener = b""
        self._chunks = [b""]

    def add(self, piece: bytes) -> None:
        self._chunks[-1] += piece

    def add_star(self) -> None:
        self._chunks.append(b"")

    def add_folders(self, opener: bytes) -> None:
        """Close a group. It spans a fixed number of names, so the first place where it fits also ends first."""
        self._done += b"(?>%b%b)" % (self._opener, self._first_fit(self._chunks))
        self._opener, self._chunks = opener, [b""]

    def finish(self) -> bytes:
        *before, last = self._chunks
        if not before:
            return self._done + self._opener + last
        return self._done + self._opener + self._first_fit(before) + _IN_NAME + b"*" + last

    @staticmethod
    def _first_fit(chunks: list[bytes]) -> bytes:
        first, *rest = chunks
        return first + b"".join(b"(?>%b*?%b)" % (_IN_NAME, chunk) for chunk in rest)


def _translate(glob: bytes, *, on_path: bool) -> bytes | None:
    """The expression for a pattern, without its end; None if it cannot match anything."""
    builder = _RegexBuilder()
    at = 0
    while at < len(glob):
        letter = glob[at : at + 1]
        if letter == b"*":
            at = _add_stars(builder, glob, at, on_path=on_path)
            continue
        if letter == b"?":
            builder.add(_IN_NAME)
        elif letter == b"[":
            found = _translate_set(glob, at)
            if found is None:
                return None
            piece, at = found
            builder.add(piece)
        else:
            if letter == b"\\":
                at += 1
                if at == len(glob):
                    return None
            builder.add(re.escape(glob[at : at + 1]))
        at += 1
    return builder.finish()


def _add_stars(builder: _RegexBuilder, glob: bytes, at: int, *, on_path: bool) -> int:
    """Add one or more stars, and the slash of ``**/``; returns the position after them."""
    rest = glob[at:].lstrip(b"*")
    end = len(glob) - len(rest)
    # git strips a literal prefix before it looks for `**`, so `a**/b` counts too, contrary to its manual.
    alone = at == 0 or glob[at - 1 : at] == b"/" or not any(letter in _SPECIAL for letter in glob[:at])
    if not (on_path and alone and end - at > 1):
        builder.add_star()
        return end
    if not rest:
        builder.add_folders(b"")
        builder.add(_ALL_BELOW)
        return end
    if rest.startswith(b"/"):
        builder.add_folders(_SOME_FOLDERS)
        return end + 1
    if rest.startswith(b"\\/"):
        builder.add_folders(_AT_LEAST_ONE_FOLDER)
        return end + 2
    builder.add_star()
    return end


def _translate_set(glob: bytes, start: int) -> tuple[bytes, int] | None:
    """The expression for the bytes in ``[...]`` and the position of its end; None if it cannot match anything."""
    at = start + 1
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    chosen: set[int] = set()
    low: int | None = None  # the start of a possible range
    first = True
    while first or glob[at : at + 1] != b"]":
        first = False
        found = _read_set_item(glob, at, low)
        if found is None:
            return None
        some, low, at = found
        chosen |= some
    wanted = (_ANY_BYTE - chosen if negated else chosen) - _NEVER_MATCHED
    if not wanted:
        return None
    return b"[%b]" % b"".join(b"\\x%02x" % byte for byte in sorted(wanted)), at


def _read_set_item(glob: bytes, at: int, low: int | None) -> tuple[Set[int], int | None, int] | None:
    """One letter, range or class: its bytes, the start of a possible range, and the position after it."""
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


# ----------------------------------------------------------------------------------------------------------------------
# What a walk leaves out: ``.git``, what ``.gitignore`` files ignore, and what the caller excludes.
#
# Limits: only ``.gitignore`` files from the workspace root down are read, not ``.git/info/exclude``, a user's global file or
# files above the workspace, nor those that the policy keeps from the call. For a walk that starts below a link, the given
# names count, not those of the link's target. A start directory that is ignored itself is walked anyway, because the caller
# named it.

# Longer files were not written by people. They are not read, which shows too much rather than too little.
MAX_LIST_BYTES: Final = 256 * 1024
# Lines plus stars, the cost of compiling patterns. This many take about a second.
MAX_WEIGHT: Final = 10_000

_LIST_NAME: Final = ".gitignore"


class _PlacedPatterns(NamedTuple):
    """Patterns and their directory: ``lead`` above the start of a walk, or ``depth`` steps below it."""

    patterns: Patterns
    lead: bytes = b""
    depth: int = 0

    def way_to(self, steps: Sequence[str]) -> bytes:
        """The path from there to the directory at ``steps``, with a trailing slash."""
        return self.lead + raw_bytes("".join([f"{step}/" for step in steps[self.depth :]]))


class IgnoreRules:
    """The rules that apply in a directory of a walk; immutable.

    ``steps`` are always the raw names from the start of the walk to a directory. Use only for directories that are not
    ignored themselves: below one that is, everything is ignored.
    """

    __slots__ = ("_all", "_excluded", "_lists", "_reads_lists", "are_empty")

    def __init__(
        self, excluded: tuple[_PlacedPatterns, ...], lists: tuple[_PlacedPatterns, ...], *, reads_lists: bool
    ) -> None:
        self._excluded = excluded
        self._lists = lists  # the deepest comes first
        self._all = (*excluded, *lists)
        self._reads_lists = reads_lists
        self.are_empty: Final = not self._all
        """Whether only ``.git`` is left out."""

    @classmethod
    def at(cls, fs: SandboxFS, path: str, *, gitignore: bool = True, exclude: Sequence[str] = ()) -> IgnoreRules:
        """The rules in the start directory of a walk, to which the patterns in ``exclude`` are relative."""
        given = [line.encode() for line in exclude]
        if _weight(given) > MAX_WEIGHT:
            raise ToolFailed("TOO_LARGE", f"exclude has too many patterns and stars: at most {MAX_WEIGHT} in all")
        excluded = (_PlacedPatterns(Patterns(given)),) if given else ()
        return cls(excluded, _read_lists_above(fs, path) if gitignore else (), reads_lists=gitignore)

    def enter(self, folder: SandboxDir, steps: Sequence[str], names: EntryNames) -> IgnoreRules:
        """The rules in ``folder``, one step below the directory of these rules; ``names`` are its entries."""
        if not self._reads_lists or _LIST_NAME not in names.files:
            return self
        patterns = _read_list(folder)
        if patterns is None:
            return self
        return IgnoreRules(
            self._excluded, (_PlacedPatterns(patterns, depth=len(steps)), *self._lists), reads_lists=True
        )

    def keep(self, names: list[str], steps: Sequence[str], mark: bytes) -> list[str]:
        """Those of some names of a directory that are not left out; ``mark`` is ``DIRECTORY`` for directories, else empty."""
        suspects = [".git"] if ".git" in names else []
        for one in self._all:
            patterns = one.patterns
            suspects += patterns.suspects(names, one.way_to(steps) if patterns.look_at_paths else b"", mark)
        if not suspects:
            return names
        ignored = {name for name in suspects if self._is_ignored(raw_bytes(name), steps, mark)}
        return [name for name in names if name not in ignored]

    def _is_ignored(self, name: bytes, steps: Sequence[str], mark: bytes) -> bool:
        if name == b".git":
            return True
        for one in self._excluded:
            if one.patterns.decide(name, mark, partial(one.way_to, steps)):
                return True
        for one in self._lists:
            verdict = one.patterns.decide(name, mark, partial(one.way_to, steps))
            if verdict is not None:
                return verdict
        return False


def _read_lists_above(fs: SandboxFS, path: str) -> tuple[_PlacedPatterns, ...]:
    """The lists from the workspace root to the start of a walk, the deepest first."""
    parts = fs.path(path).parts
    above: list[tuple[_PlacedPatterns, ...]] = [_add_list_at(fs, ".", ())]
    for depth, name in enumerate(parts, start=1):
        if name != "..":
            lists = tuple(one._replace(lead=one.lead + raw_bytes(f"{name}/")) for one in above[-1])
            above.append(_add_list_at(fs, "/".join(parts[:depth]), lists))
        elif len(above) > 1:
            above.pop()
    return above[-1]


def _add_list_at(fs: SandboxFS, path: str, lists: tuple[_PlacedPatterns, ...]) -> tuple[_PlacedPatterns, ...]:
    try:
        with fs.open_dir(path) as folder:
            patterns = _read_list(folder)
    except (ToolFailed, SandboxViolation):
        return lists  # it can be traversed but not listed, or this call may not use it
    return lists if patterns is None else (_PlacedPatterns(patterns), *lists)


def _read_list(folder: SandboxDir) -> Patterns | None:
    """The patterns of the directory's ``.gitignore``; None if it is missing, unreadable, a link or too long."""
    try:
        data = folder.read_child_file(_LIST_NAME, MAX_LIST_BYTES)
    except (ToolFailed, SandboxViolation):
        return None
    lines = (data or b"").removeprefix(codecs.BOM_UTF8).split(b"\n")
    return Patterns(lines) if any(lines) and _weight(lines) <= MAX_WEIGHT else None


def _weight(lines: Sequence[bytes]) -> int:
    return len(lines) + sum(line.count(b"*") for line in lines)
