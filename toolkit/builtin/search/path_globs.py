"""Shell-style patterns for paths, translated to expressions for the linear regex engine.

``*``, ``?`` and ``[a-z]`` match within a name, ``**`` as a whole name matches any number of directories, ``{a,b}`` matches
either, and a backslash escapes the next character. Nothing is expanded: neither choices nor repeated ``**/`` cost more than
their letters.

>>> glob = parse_glob("src/**/*.{py,pyi}")
>>> glob.matching(("src", "app"), ["a.py", "b.txt", "c.pyi"])
['a.py', 'c.pyi']
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from toolkit.builtin.search.regex import compile_trusted, escape
from toolkit.errors import SandboxViolation, ToolFailed

MAX_PATTERN_CHARACTERS: Final = 1000
# Replaces line feeds in names, which are matched as lines; no name contains it.
_LINE_FEED: Final = "\0"
_MAX_NESTING: Final = 20

_LITERAL: Final = re.compile(r"(?:[^*?\[{\\]|\\.)+", re.DOTALL)
_STARRED: Final = re.compile(r"\*([^*?\[\]{},\\\n]+)(?:\{([^*?\[\]{}\\\n]*)\})?")
_NAMED_CLASS: Final = re.compile(
    r"\[:\^?(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]"
)


class PathMatcher:
    """Tests which paths match an expression. Every match ends in one of ``endings``, which may be empty.

    ``only_endings`` says that the rest of the expression matches all paths that are tested.
    """

    def __init__(self, expression: str, endings: Sequence[str] = ("",), *, only_endings: bool = False) -> None:
        self._matcher = compile_trusted(f"^{expression}$")
        self._endings = tuple(endings)
        self._only_endings = only_endings

    def matching(self, steps: Sequence[str], names: list[str]) -> list[str]:
        """The raw names that match in the directory at ``steps``.

        All are tested at once, as one block with a path per line.
        """
        if self._endings != ("",):
            endings = self._endings
            names = [name for name in names if name.endswith(endings)]
        if not names or self._only_endings:
            return names
        way = "".join([f"{step}/" for step in steps])
        block = "\n".join([way + name for name in names])
        if block.count("\n") >= len(names):  # a name contains a line feed
            block = "\n".join([(way + name).replace("\n", _LINE_FEED) for name in names])
        data = _encode(block)
        found: list[str] = []
        at = number = 0
        for start, _ in self._matcher.spans(data):
            number += data.count(b"\n", at, start)
            at = start
            found.append(names[number])
        return found


class Glob(PathMatcher):
    """A pattern for paths, relative to a directory.

    ``names`` are the literal directories at the start of the pattern, and every match is below them. ``depth`` is the maximum
    number of directories above a match, infinite with ``**``. ``has_dots`` says whether a name in the pattern starts with a
    dot.
    """

    def __init__(self, translator: _GlobTranslator, parts: Sequence[str]) -> None:
        branch = translator.read_branch(0)
        self.names: Final = _literal_names(parts[:-1])
        self.depth: Final = branch.slashes
        self.has_dots: Final = translator.has_dots
        endings, is_simple = _endings(parts[-1])
        # Only paths below these names are tested, and no hidden ones that a wildcard must not match.
        is_anywhere = is_simple and list(parts[len(self.names) :]) in (["**"], ["**", parts[-1]])
        is_free = translator.include_hidden or not self.has_dots
        super().__init__(branch.expression, endings, only_endings=is_anywhere and is_free)

    def can_match_below(self, steps: Sequence[str]) -> bool:
        """Whether anything may match below the directory at ``steps``."""
        return len(steps) <= self.depth and all(map(str.__eq__, steps, self.names))


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a name is not UTF-8
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


def parse_glob(pattern: str, *, include_hidden: bool = False) -> Glob:
    """Parse a pattern; ``include_hidden`` lets wildcards match names that start with a dot."""
    parts = _split_parts(pattern)
    if pattern.endswith("/"):
        parts.append("**")
    return Glob(_GlobTranslator("/".join(parts), include_hidden=include_hidden), parts)


def parse_any(patterns: Sequence[str]) -> PathMatcher | None:
    """One matcher for several patterns, None if there are none.

    As in ``.gitignore``, a pattern without a slash matches a name at any depth, one with a leading slash only in the
    directory itself, and one with a trailing slash everything below.
    """
    if sum(map(len, patterns)) > MAX_PATTERN_CHARACTERS:
        raise _too_long()
    branches: list[str] = []
    for pattern in patterns:
        parts = _split_parts(pattern.removeprefix("/"))
        if "/" not in pattern.rstrip("/"):
            parts.insert(0, "**")
        if pattern.endswith("/"):
            parts.append("**")
        branches.append(_GlobTranslator("/".join(parts), include_hidden=True).read_branch(0).expression)
    return PathMatcher(f"(?:{'|'.join(branches)})") if branches else None


def _split_parts(pattern: str) -> list[str]:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise _too_long()
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/") or ".." in parts:
        raise SandboxViolation(
            "a pattern must stay below its directory, without a leading '/' and without '..'; use path instead"
        )
    if not parts:
        raise ToolFailed("INVALID_REGEX", "the pattern is empty; '**' matches everything below a directory")
    return parts


def _too_long() -> ToolFailed:
    return ToolFailed("TOO_LARGE", f"patterns may have at most {MAX_PATTERN_CHARACTERS} characters; use several calls")


def _endings(last: str) -> tuple[list[str], bool]:
    """The endings of all matching names, for ``*.py``, ``*.{js,ts}`` and ``**``, and whether nothing else matters."""
    found = _STARRED.fullmatch(last)
    if found is None:
        return [""], last == "**"
    return [found[1] + choice for choice in (found[2] or "").split(",")], True


def _literal_names(parts: Sequence[str]) -> tuple[str, ...]:
    names: list[str] = []
    for part in parts:
        if not _LITERAL.fullmatch(part):
            break
        names.append(re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL))
    return tuple(names)


class _Branch(NamedTuple):
    """A part of the pattern, up to its end or to the end of one alternative."""

    expression: str
    slashes: float
    ends_name: bool
    """Whether what follows starts a name."""


class _GlobTranslator:
    """Translates a pattern in one pass from left to right."""

    def __init__(self, text: str, *, include_hidden: bool) -> None:
        self._text = text
        self._at = 0
        self.include_hidden = include_hidden
        self._first = "[^/]" if include_hidden else "[^/.]"
        self.has_dots = False

    def read_branch(self, nesting: int, *, starts_name: bool = True) -> _Branch:
        """The branch from here on; inside braces, a comma or the closing brace ends it."""
        expression, slashes = "", 0.0
        while self._at < len(self._text):
            letter = self._text[self._at]
            if nesting and letter in ",}":
                break
            if letter == "*":
                piece, is_any_depth = self._read_stars(nesting, starts_name=starts_name)
                slashes += math.inf if is_any_depth else 0
                starts_name = starts_name and is_any_depth and self._text[self._at - 1] == "/"
                if piece and expression.endswith(piece) and starts_name:
                    continue  # once is enough
                expression += piece
            elif letter == "{" and self._is_choice():
                choice = self._read_choice(nesting + 1, starts_name=starts_name)
                expression += choice.expression
                slashes += choice.slashes
                starts_name = choice.ends_name
            elif letter == "/":
                self._at += 1
                expression += letter
                slashes += 1
                starts_name = True
            else:
                expression += self._read_character(starts_name=starts_name)
                starts_name = False
        return _Branch(expression, slashes, starts_name)

    def _read_stars(self, nesting: int, *, starts_name: bool) -> tuple[str, bool]:
        """One or more stars; also returns whether they match directories, including the slash after them."""
        begin = self._at
        while self._text.startswith("*", self._at):
            self._at += 1
        following = self._text[self._at : self._at + 1]
        if starts_name and self._at - begin == 2:
            if following == "/":
                self._at += 1
                return f"(?:{self._first}[^/]*/)*", True
            if not following or (nesting and following in ",}"):
                return f"(?:{self._first}[^/]*/)*{self._first}[^/]*", True
        if not starts_name:
            return "[^/]*", False
        # A dot after it would start the name if the star matched nothing.
        least = "" if following == "." and not self.include_hidden else "?"
        return f"(?:{self._first}[^/]*){least}", False

    def _is_choice(self) -> bool:
        """Whether this brace is closed."""
        depth, at = 0, self._at
        while at < len(self._text):
            letter = self._text[at]
            depth += (letter == "{") - (letter == "}")
            if depth == 0:
                return True
            at += 1 + (letter == "\\")
        return False

    def _read_choice(self, nesting: int, *, starts_name: bool) -> _Branch:
        if nesting > _MAX_NESTING:
            raise ToolFailed("TOO_LARGE", f"the pattern nests braces more than {_MAX_NESTING} deep; simplify it")
        branches: list[_Branch] = []
        while not branches or self._text.startswith(",", self._at):
            self._at += 1  # the opening brace, or a comma
            branches.append(self.read_branch(nesting, starts_name=starts_name))
        self._at += 1
        joined = "|".join(one.expression for one in branches)
        slashes = max(one.slashes for one in branches)
        return _Branch(f"(?:{joined})", slashes, all(one.ends_name for one in branches))

    def _read_character(self, *, starts_name: bool) -> str:
        letter = self._text[self._at]
        self._at += 1
        if letter == "?":
            return self._first if starts_name else "[^/]"
        if letter == "[":
            found = self._read_set()
            if found is not None:
                return f"[{found}&&{self._first if starts_name else '[^/]'}]"
        if letter == "\\" and self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 1
        self.has_dots |= starts_name and letter == "."
        return escape(letter.replace("\n", _LINE_FEED))

    def _read_set(self) -> str | None:
        """The set between brackets, after the opening one; None if it is not closed."""
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
            low, at = self._read_letter(at)
            if not low:
                return None
            if self._text[at : at + 1] == "-" and self._text[at + 1 : at + 2] not in ("]", ""):
                high, at = self._read_letter(at + 1)
                if low > high:
                    raise ToolFailed(
                        "INVALID_REGEX", f"the pattern contains the empty range {low!r}-{high!r}; swap its ends"
                    )
                items.append(f"{escape(low)}-{escape(high)}")
            else:
                items.append(escape(low))
        self._at = at + 1
        return f"[{'^' * negated}{''.join(items)}]"

    def _read_letter(self, at: int) -> tuple[str, int]:
        at += self._text[at : at + 1] == "\\"
        return self._text[at : at + 1], at + 1
