"""File names in git diffs: prefixes, quotes, and timestamps after a tab."""

from __future__ import annotations

import re
from typing import Final

from toolkit.builtin.patch.model import invalid

NOWHERE: Final = "/dev/null"
# The longest possible path, with every byte written as an escape.
_MAX_CHARACTERS: Final = 4 * 4096

# a/ and b/, or the prefixes of `diff.mnemonicPrefix` for commits, the index, objects and the work tree.
_PREFIX: Final = re.compile("[abciow12]/")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS: Final = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


def read_name(text: str, line: int) -> str:
    """The file name at the end of a header line, without a timestamp after a tab."""
    if len(text) > _MAX_CHARACTERS:
        raise invalid(line, "expected a file name, but this is too long for one")
    quoted = _QUOTED.match(text)
    if quoted is not None:
        return _unquote(quoted[1], line)
    name = text.partition("\t")[0]
    if not name:
        raise invalid(line, "expected a file name")
    return name


def read_two_names(text: str, line: int) -> tuple[str, str] | None:
    """The two names after ``diff --git``; None if they cannot be separated because they differ or contain blanks."""
    if len(text) > 2 * _MAX_CHARACTERS:
        return None
    quoted = _QUOTED.match(text)
    if quoted is not None:
        rest = text[quoted.end() :]
        return (_unquote(quoted[1], line), read_name(rest[1:], line)) if rest.startswith(" ") else None
    first, blank, rest = text.partition(' "')
    if blank:
        return first, read_name(f'"{rest}', line)
    # Both have the same length, because they differ only in the first letter.
    middle = len(text) // 2
    old, new = text[:middle], text[middle + 1 :]
    is_pair = text[middle : middle + 1] == " " and without_prefix(old, new)[0] == without_prefix(old, new)[1]
    return (old, new) if is_pair else None


def without_prefix(old: str, new: str) -> tuple[str, str]:
    """Both names without ``a/`` and ``b/``, if they have such prefixes."""
    if _PREFIX.match(old) and _PREFIX.match(new) and old[0] != new[0]:
        return old[2:], new[2:]
    return old, new


def _unquote(text: str, line: int) -> str:
    def replace(found: re.Match[bytes]) -> bytes:
        letter = found[1]
        if letter.isdigit():
            number = int(letter, 8)
        elif letter in _LETTERS:
            number = _LETTERS[letter]
        else:
            raise invalid(line, "expected an escape in git's syntax, such as \\303 or \\t, in the quoted name")
        return bytes((number & 0xFF,))

    try:
        return _ESCAPE.sub(replace, text.encode()).decode()
    except UnicodeDecodeError:
        raise invalid(line, "the quoted name is not UTF-8; a patch cannot change such files") from None
