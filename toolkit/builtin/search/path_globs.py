"""Patterns for paths as shells have them, made into expressions for the linear engine.

``*``, ``?`` and ``[a-z]`` stay within a name, ``**`` as a name of its own is any number of directories, ``{a,b}`` is a
choice, and a backslash takes the next character as it is. Nothing is multiplied out: neither choices nor a row of ``**/``
cost more than their letters.

>>> glob = parse("src/**/*.{py,pyi}")
>>> glob.matching(("src", "app"), ["a.py", "b.txt", "c.pyi"])
['a.py', 'c.pyi']
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from toolkit.builtin.search.regex import escape, for_expression
from toolkit.errors import SandboxViolation, ToolFailed

MAX_PATTERN_CHARACTERS: Final = 1000
# What stands for a line feed in a name, where names are lines; no name holds it.
_LINE_FEED: Final = "\0"
_MAX_NESTING: Final = 20

_WRITTEN_OUT: Final = re.compile(r"(?:[^*?\[{\\]|\\.)+", re.DOTALL)
_STARRED: Final = re.compile(r"\*([^*?\[\]{},\\\n]+)(?:\{([^*?\[\]{}\\\n]*)\})?")
_NAMED_CLASS: Final = re.compile(
    r"\[:\^?(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]"
)


class PathMatcher:
    """Says which paths match an expression. Every match ends in one of ``endings``, if only in nothing.

    ``only_endings`` says that the rest of the expression matches whatever is asked about.
    """

    def __init__(self, expression: str, endings: Sequence[str] = ("",), *, only_endings: bool = False) -> None:
        self._matcher = for_expression(f"^{expression}$")
        self._endings = tuple(endings)
        self._only_endings = only_endings

    def matching(self, steps: Sequence[str], names: list[str]) -> list[str]:
        """Those of the raw names that match in the directory to which the steps lead.

        They are put before the engine all at once, a path a line.
        """
        if self._endings != ("",):
            names = [name for name in names if name.endswith(self._endings)]
        if not names or self._only_endings:
            return names
        way = "".join([f"{step}/" for step in steps])
        block = "\n".join([way + name for name in names])
        if block.count("\n") >= len(names):  # a name holds one itself
            block = "\n".join([(way + name).replace("\n", _LINE_FEED) for name in names])
        data = _encoded(block)
        found: list[str] = []
        at = number = 0
        for start, _ in self._matcher.spans(data):
            number += data.count(b"\n", at, start)
            at = start
            found.append(names[number])
        return found


class Glob(PathMatcher):
    """A pattern for paths, relative to the directory where it stands.

    ``names`` are the directories that every match lies below, as far as they are written out, and ``depth`` is below how
    many a match can lie, infinite with ``**``. ``has_dots`` tells whether the pattern itself begins a name with a dot.
    """

    def __init__(self, translator: _Translator, parts: Sequence[str]) -> None:
        branch = translator.branch(0)
        self.names: Final = _written_out(parts[:-1])
        self.depth: Final = branch.slashes
        self.has_dots: Final = translator.has_dots
        endings, is_simple = _endings(parts[-1])
        # Asked only about what lies below these names, and about no hidden one that a wildcard must not match.
        is_anywhere = is_simple and list(parts[len(self.names) :]) in (["**"], ["**", parts[-1]])
        is_free = translator.include_hidden or not self.has_dots
        super().__init__(branch.expression, endings, only_endings=is_anywhere and is_free)

    def may_be_below(self, steps: Sequence[str]) -> bool:
        """Whether something may match below the directory to which the steps lead."""
        return len(steps) <= self.depth and all(map(str.__eq__, steps, self.names))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a name is no UTF-8
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


def parse(pattern: str, *, include_hidden: bool = False) -> Glob:
    """Read a pattern; ``include_hidden`` lets wildcards match names that begin with a dot."""
    parts = _parts(pattern)
    if pattern.endswith("/"):
        parts.append("**")
    return Glob(_Translator("/".join(parts), include_hidden=include_hidden), parts)


def parse_choice(patterns: Sequence[str]) -> PathMatcher | None:
    """One matcher for several patterns, None for none.

    As in lists of files to ignore, a pattern without a slash fits a name at any depth, and one with a slash at its
    beginning only here; one with a slash at its end fits all that is below.
    """
    if sum(map(len, patterns)) > MAX_PATTERN_CHARACTERS:
        raise _too_long()
    branches: list[str] = []
    for pattern in patterns:
        parts = _parts(pattern.removeprefix("/"))
        if "/" not in pattern.rstrip("/"):
            parts.insert(0, "**")
        if pattern.endswith("/"):
            parts.append("**")
        branches.append(_Translator("/".join(parts), include_hidden=True).branch(0).expression)
    return PathMatcher(f"(?:{'|'.join(branches)})") if branches else None


def _parts(pattern: str) -> list[str]:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise _too_long()
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/") or ".." in parts:
        raise SandboxViolation(
            "a pattern stays below its directory: no '/' at its beginning, no '..'; use path instead"
        )
    if not parts:
        raise ToolFailed("INVALID_REGEX", "the pattern names nothing; '**' is everything below a directory")
    return parts


def _too_long() -> ToolFailed:
    return ToolFailed("TOO_LARGE", f"patterns have at most {MAX_PATTERN_CHARACTERS} characters; use several calls")


def _endings(last: str) -> tuple[list[str], bool]:
    """What every name that fits ends in, for ``*.py``, ``*.{js,ts}`` and ``**``, and whether that is all it takes."""
    found = _STARRED.fullmatch(last)
    if found is None:
        return [""], last == "**"
    return [found[1] + choice for choice in (found[2] or "").split(",")], True


def _written_out(parts: Sequence[str]) -> tuple[str, ...]:
    names: list[str] = []
    for part in parts:
        if not _WRITTEN_OUT.fullmatch(part):
            break
        names.append(re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL))
    return tuple(names)


class _Branch(NamedTuple):
    """A part of the pattern up to its end, or to the end of one choice of several."""

    expression: str
    slashes: float
    ends_name: bool
    """Whether what follows begins a name."""


class _Translator:
    """Reads a pattern once from the left to the right."""

    def __init__(self, text: str, *, include_hidden: bool) -> None:
        self._text = text
        self._at = 0
        self.include_hidden = include_hidden
        self._first = "[^/]" if include_hidden else "[^/.]"
        self.has_dots = False

    def branch(self, nesting: int, *, begins_name: bool = True) -> _Branch:
        """The branch from here on; inside braces a comma or the closing brace ends it."""
        expression, slashes = "", 0.0
        while self._at < len(self._text):
            letter = self._text[self._at]
            if nesting and letter in ",}":
                break
            if letter == "*":
                piece, is_any_depth = self._stars(nesting, begins_name=begins_name)
                slashes += math.inf if is_any_depth else 0
                begins_name = begins_name and is_any_depth and self._text[self._at - 1] == "/"
                if piece and expression.endswith(piece) and begins_name:
                    continue  # once is enough
                expression += piece
            elif letter == "{" and self._is_choice():
                choice = self._choice(nesting + 1, begins_name=begins_name)
                expression += choice.expression
                slashes += choice.slashes
                begins_name = choice.ends_name
            elif letter == "/":
                self._at += 1
                expression += letter
                slashes += 1
                begins_name = True
            else:
                expression += self._character(begins_name=begins_name)
                begins_name = False
        return _Branch(expression, slashes, begins_name)

    def _stars(self, nesting: int, *, begins_name: bool) -> tuple[str, bool]:
        """One star or several; whether they stand for directories, too, with the slash behind them."""
        begin = self._at
        while self._text.startswith("*", self._at):
            self._at += 1
        following = self._text[self._at : self._at + 1]
        if begins_name and self._at - begin == 2:
            if following == "/":
                self._at += 1
                return f"(?:{self._first}[^/]*/)*", True
            if not following or (nesting and following in ",}"):
                return f"(?:{self._first}[^/]*/)*{self._first}[^/]*", True
        if not begins_name:
            return "[^/]*", False
        # A dot behind it would begin the name if the star were nothing.
        least = "" if following == "." and not self.include_hidden else "?"
        return f"(?:{self._first}[^/]*){least}", False

    def _is_choice(self) -> bool:
        """Whether the brace here is closed again."""
        depth, at = 0, self._at
        while at < len(self._text):
            letter = self._text[at]
            depth += (letter == "{") - (letter == "}")
            if depth == 0:
                return True
            at += 1 + (letter == "\\")
        return False

    def _choice(self, nesting: int, *, begins_name: bool) -> _Branch:
        if nesting > _MAX_NESTING:
            raise ToolFailed("TOO_LARGE", f"the pattern nests more than {_MAX_NESTING} braces")
        branches: list[_Branch] = []
        while not branches or self._text.startswith(",", self._at):
            self._at += 1  # the opening brace, or a comma
            branches.append(self.branch(nesting, begins_name=begins_name))
        self._at += 1
        joined = "|".join(one.expression for one in branches)
        slashes = max(one.slashes for one in branches)
        return _Branch(f"(?:{joined})", slashes, all(one.ends_name for one in branches))

    def _character(self, *, begins_name: bool) -> str:
        letter = self._text[self._at]
        self._at += 1
        if letter == "?":
            return self._first if begins_name else "[^/]"
        if letter == "[":
            found = self._letters()
            if found is not None:
                return f"[{found}&&{self._first if begins_name else '[^/]'}]"
        if letter == "\\" and self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 1
        self.has_dots |= begins_name and letter == "."
        return escape(letter.replace("\n", _LINE_FEED))

    def _letters(self) -> str | None:
        """The letters between brackets, the first of which was passed; None if they are not closed."""
        at = self._at
        negated = self._text[at : at + 1] in ("!", "^")
        at += negated
        items: list[str] = []
        while not items or self._text[at : at + 1] != "]":
            named = _NAMED_CLASS.match(self._text, at)
            if named:
                items.append(named[0])
                at = named.end()
                continue
            low, at = self._letter(at)
            if not low:
                return None
            if self._text[at : at + 1] == "-" and self._text[at + 1 : at + 2] not in ("]", ""):
                high, at = self._letter(at + 1)
                if low > high:
                    raise ToolFailed("INVALID_REGEX", f"the pattern holds the range {low!r}-{high!r}, which is empty")
                items.append(f"{escape(low)}-{escape(high)}")
            else:
                items.append(escape(low))
        self._at = at + 1
        return f"[{'^' * negated}{''.join(items)}]"

    def _letter(self, at: int) -> tuple[str, int]:
        at += self._text[at : at + 1] == "\\"
        return self._text[at : at + 1], at + 1
