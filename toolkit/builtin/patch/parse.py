"""Parses a patch in either format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from toolkit.errors import InvalidArguments, ToolFailed
from toolkit.visible import escape_hidden

# ----------------------------------------------------------------------------------------------------------------------
# A parsed patch, independent of its format.

Format: TypeAlias = Literal["envelope", "git"]
Verb: TypeAlias = Literal["add", "update", "delete", "move", "copy"]

# White space as Unicode defines it; Python's str.strip also strips four control characters.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(slots=True)
class Hunk:
    """Consecutive lines of a file, and how they change."""

    line: int
    """Its line number in the patch."""
    rows: list[str] = field(default_factory=list)
    """Each with its mark: a blank to keep the line, ``-`` to remove it, ``+`` to add it."""
    anchor: str | None = None
    """A line that occurs somewhere before them."""
    at_end: bool = False
    """Whether they are the last lines of the file."""
    old_start: int | None = None
    """Number of the first old line, if the patch gives it."""
    old_is_open: bool = False
    """Whether the last old line ends the file without a line end."""
    new_is_open: bool = False

    @property
    def old(self) -> list[str]:
        return [row[1:] for row in self.rows if row[0] != "+"]

    @property
    def new(self) -> list[str]:
        return [row[1:] for row in self.rows if row[0] != "-"]

    @property
    def added(self) -> int:
        return sum(row[0] == "+" for row in self.rows)

    @property
    def removed(self) -> int:
        return sum(row[0] == "-" for row in self.rows)


@dataclass(slots=True)
class PatchOperation:
    """What to do with one file."""

    line: int
    """Its line number in the patch."""
    verb: Verb
    path: str
    new_path: str | None = None
    """Where the file is moved or copied to."""
    content: list[str] | None = None
    """The lines of an added file."""
    content_is_open: bool = False
    """Whether the last of them has no line end."""
    hunks: list[Hunk] = field(default_factory=list)
    executable: bool | None = None
    """Whether to make it executable; None leaves it as it is."""

    @property
    def target(self) -> str:
        """The path of the file afterwards."""
        return self.path if self.new_path is None else self.new_path


@dataclass(frozen=True, slots=True)
class Patch:
    format: Format
    operations: Sequence[PatchOperation]


def invalid(line: int, problem: str) -> ToolFailed:
    """The error for a mistake in the patch itself, with its line number."""
    return ToolFailed("INVALID_PATCH", f"line {line} of the patch: {problem}. Nothing was changed", line=line)


# ----------------------------------------------------------------------------------------------------------------------
# Parses the format that starts with ``*** Begin Patch``, which locates changes by the lines around them.
#
# Like Codex, it tolerates frequent mistakes of models: white space around the marker lines, a here-document around the
# patch, an empty line without a leading space for an empty line to keep.

BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_PLACE: Final = "@@"
_ANCHOR: Final = "@@ "
_HERE: Final = ("<<EOF", "<<'EOF'", '<<"EOF"')
_HEADERS: Final = f"'{_ADD}<path>', '{_UPDATE}<path>', '{_DELETE}<path>' or '{END}'"
_MAX_QUOTED: Final = 100


def is_envelope(lines: Sequence[str]) -> bool:
    """Whether the first line that is not empty starts an envelope."""
    first = next((line.strip(WHITE_SPACE) for line in lines if line.strip(WHITE_SPACE)), "")
    return first == BEGIN or first in _HERE


def parse_envelope(lines: Sequence[str]) -> Patch:
    """The patch in these lines; raises ``INVALID_PATCH`` with the number of the wrong line."""
    first, last = _find_bounds(lines)
    reader = _EnvelopeReader()
    for number in range(first + 1, last):
        reader.read(number + 1, lines[number].removesuffix("\r"))
    reader.finish(last + 1)
    if not reader.operations:
        raise invalid(first + 2, f"no file is named between '{BEGIN}' and '{END}'; expected {_HEADERS}")
    return Patch("envelope", reader.operations)


def _find_bounds(lines: Sequence[str]) -> tuple[int, int]:
    """The line numbers of the first and last marker."""
    written = [number for number, line in enumerate(lines) if line.strip(WHITE_SPACE)]
    first, last = written[0], written[-1]
    if lines[first].strip(WHITE_SPACE) in _HERE and lines[last].strip(WHITE_SPACE).endswith("EOF"):
        first, last = first + 1, last - 1
    if first >= last or lines[first].strip(WHITE_SPACE) != BEGIN:
        raise invalid(first + 1, f"expected '{BEGIN}', and '{END}' as the last line")
    if lines[last].strip(WHITE_SPACE) != END:
        raise invalid(last + 1, f"expected '{END}' as the last line, not {_quote(lines[last])}")
    return first, last


class _EnvelopeReader:
    """Reads line by line; what a line may be depends on the last header."""

    def __init__(self) -> None:
        self.operations: list[PatchOperation] = []
        self._ended_at: int | None = None

    def read(self, number: int, line: str) -> None:
        if self._ended_at is not None:
            if line.strip(WHITE_SPACE):
                raise invalid(number, f"nothing may follow '{END}' in line {self._ended_at}")
            return
        operation = self.operations[-1] if self.operations else None
        if operation is None or operation.verb in ("add", "delete"):
            self._read_outside(number, line, operation)
        else:
            self._read_update(number, line, operation)

    def finish(self, number: int) -> None:
        """Check the end of the patch."""
        if self._ended_at is not None:
            raise invalid(number, f"nothing may follow '{END}' in line {self._ended_at}")
        self._close(number)

    def _read_outside(self, number: int, line: str, operation: PatchOperation | None) -> None:
        if self._read_header(number, line.strip(WHITE_SPACE)):
            return
        if operation is None or operation.content is None:
            raise invalid(number, f"expected {_HEADERS}, not {_quote(line)}")
        if not line.startswith("+"):
            raise invalid(number, f"expected a line of the new file that starts with '+', or {_HEADERS}")
        operation.content.append(line[1:])

    def _read_header(self, number: int, line: str) -> bool:
        """Read a header; False if the line is not one."""
        if line == END:
            self._close(number)
            self._ended_at = number
        elif line.startswith(_ADD):
            self._begin(PatchOperation(number, "add", line.removeprefix(_ADD), content=[]))
        elif line.startswith(_DELETE):
            self._begin(PatchOperation(number, "delete", line.removeprefix(_DELETE)))
        elif line.startswith(_UPDATE):
            self._begin(PatchOperation(number, "update", line.removeprefix(_UPDATE)))
        else:
            return False
        return True

    def _begin(self, operation: PatchOperation) -> None:
        self._close(operation.line)
        self.operations.append(operation)

    def _close(self, number: int) -> None:
        """Check that the last file is complete: an update must have hunks with lines."""
        operation = self.operations[-1] if self.operations else None
        if operation is None or operation.verb in ("add", "delete"):
            return
        if not operation.hunks:
            problem = f"the update of '{operation.path}' has no hunk; expected '{_PLACE}' and lines"
            way_out = "; to only move the file, give one line to keep" if operation.verb == "move" else ""
            raise invalid(operation.line, problem + way_out)
        if not operation.hunks[-1].rows:
            raise _no_rows(number)

    def _read_update(self, number: int, line: str, operation: PatchOperation) -> None:
        # A line to keep starts with a blank, so only trailing white space is ignored.
        marker = line.rstrip(WHITE_SPACE)
        if self._read_header(number, marker):
            return
        hunk = operation.hunks[-1] if operation.hunks else None
        is_place = marker == _PLACE or marker.startswith(_ANCHOR)
        if hunk is not None and hunk.at_end and not is_place:
            if marker:
                raise invalid(number, f"after '{_END_OF_FILE}', expected '{_PLACE}' or {_HEADERS}")
        elif hunk is None and operation.new_path is None and marker.startswith(_MOVE):
            operation.verb, operation.new_path = "move", marker.removeprefix(_MOVE)
        elif is_place:
            if hunk is not None and not hunk.rows:
                raise _no_rows(number)
            anchor = marker.removeprefix(_ANCHOR) if marker != _PLACE else None
            operation.hunks.append(Hunk(number, anchor=anchor))
        elif marker == _END_OF_FILE:
            if hunk is not None and not hunk.rows:
                raise _no_rows(number)
            if hunk is not None:
                hunk.at_end = True
        else:
            self._read_row(number, line, operation)

    def _read_row(self, number: int, line: str, operation: PatchOperation) -> None:
        row = line or " "
        if row[0] not in " +-":
            what = "a line of the hunk that starts with ' ', '+' or '-'"
            raise invalid(number, f"expected {what}, or '{_PLACE}', or {_HEADERS}, not {_quote(line)}")
        if not operation.hunks:
            operation.hunks.append(Hunk(number))
        operation.hunks[-1].rows.append(row)


def _no_rows(number: int) -> ToolFailed:
    return invalid(
        number, f"the hunk above has no lines; expected lines that start with ' ', '+' or '-' after '{_PLACE}'"
    )


def _quote(line: str) -> str:
    shown = line.strip(WHITE_SPACE)
    return f"'{escape_hidden(shown if len(shown) <= _MAX_QUOTED else shown[:_MAX_QUOTED] + '…')}'"


# ----------------------------------------------------------------------------------------------------------------------
# File names in git diffs: prefixes, quotes, and timestamps after a tab.

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


# ----------------------------------------------------------------------------------------------------------------------
# Parses unified diffs, with or without git's headers; text around them is skipped, as git does.
#
# Only the contents of files, and whether they are executable, are taken from a diff. Links, submodules and binary patches are
# refused, whatever else the diff contains.

_GIT: Final = "diff --git "
_RANGE: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MODE: Final = re.compile(r"([0-7]{1,7})\s*$")
_INDEX: Final = re.compile(r"[0-9a-f]+\.\.[0-9a-f]+ ([0-7]{1,7})$")
_KIND: Final = 0o170000
_REGULAR: Final = 0o100000
_KINDS: Final = {0o120000: "a symbolic link", 0o160000: "a submodule", 0o040000: "a directory"}


def is_git_diff(lines: Sequence[str]) -> bool:
    """Whether any line is the header of a diff."""
    return any(
        line.startswith(_GIT) or (line.startswith("--- ") and lines[number].startswith("+++ "))
        for number, line in enumerate(lines[:-1], 1)
    ) or lines[-1].startswith(_GIT)


def parse_git_diff(lines: Sequence[str]) -> Patch:
    """The patch in these lines; raises ``INVALID_PATCH`` with the number of the wrong line."""
    if not lines[-1]:
        lines = lines[:-1]  # nothing follows the last line feed
    # Git never ends a header in a carriage return: if all have one, something added it to every line.
    headers = [line for line in lines if line.startswith((_GIT, "--- ", "+++ ", "@@ -"))]
    if all(line.endswith("\r") for line in headers):
        lines = [line.removesuffix("\r") for line in lines]
    return Patch("git", _GitDiffReader(lines).read())


@dataclass(slots=True)
class _FileHeader:
    """The header of one file, before its hunks."""

    line: int
    old: str | None = None
    new: str | None = None
    verb: Verb = "update"
    executable: bool | None = None


class _GitDiffReader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0

    def read(self) -> list[PatchOperation]:
        found: list[PatchOperation] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_GIT):
                found.append(self._read_operation(self._read_git_header()))
            elif line.startswith("--- ") and self._peek(1).startswith("+++ "):
                header = _FileHeader(self._at + 1)
                found.append(self._read_operation(header))
            elif _RANGE.match(line):
                raise invalid(self._at + 1, "expected '--- a/<path>' and '+++ b/<path>' before this hunk")
            elif _is_binary(line):
                raise _binary_refusal(self._at + 1)
            elif line.startswith(("diff --cc ", "diff --combined ", "@@@ ")):
                raise invalid(
                    self._at + 1, "a combined diff of a merge cannot be applied; expected a diff against one parent"
                )
            else:
                self._at += 1
        return found

    def _peek(self, ahead: int) -> str:
        return self._lines[self._at + ahead] if self._at + ahead < len(self._lines) else ""

    # -- headers ---------------------------------------------------------------------------------------------------------

    def _read_git_header(self) -> _FileHeader:
        header = _FileHeader(self._at + 1)
        names = read_two_names(self._lines[self._at].removeprefix(_GIT), header.line)
        if names is not None:
            header.old, header.new = without_prefix(*names)
        self._at += 1
        while self._at < len(self._lines) and self._read_extended(header, self._lines[self._at]):
            self._at += 1
        return header

    def _read_extended(self, header: _FileHeader, line: str) -> bool:
        """Read one line of an extended header; False if it is not one."""
        number = self._at + 1
        rest = line.partition(" ")[2]
        if _is_binary(line):
            raise _binary_refusal(number)
        if line.startswith("index "):
            found = _INDEX.match(rest)
            if found is not None:
                _is_executable(found[1], number)
        elif line.startswith(("old mode ", "new mode ", "new file mode ", "deleted file mode ")):
            executable = _is_executable(line.rpartition("mode ")[2], number)
            header.executable = header.executable if line.startswith(("old", "deleted")) else executable
            header.verb = "add" if line.startswith("new file") else "delete" if line.startswith("del") else header.verb
        elif line.startswith(("rename from ", "copy from ")):
            header.old = read_name(rest.removeprefix("from "), number)
        elif line.startswith(("rename to ", "copy to ")):
            header.new = read_name(rest.removeprefix("to "), number)
            header.verb = "move" if line.startswith("rename") else "copy"
        else:
            return line.startswith(("similarity index ", "dissimilarity index "))
        return True

    def _read_operation(self, header: _FileHeader) -> PatchOperation:
        if self._peek(0).startswith("--- "):
            self._read_names(header)
        hunks: list[Hunk] = []
        while _RANGE.match(self._peek(0)):
            hunks.append(self._read_hunk())
        return _build_operation(header, hunks)

    def _read_names(self, header: _FileHeader) -> None:
        """Read the lines ``---`` and ``+++``, which repeat the names or give them for the first time."""
        line = self._at + 1
        if not self._peek(1).startswith("+++ "):
            raise invalid(line + 1, "expected '+++ b/<path>'")
        old = read_name(self._peek(0).removeprefix("--- "), line)
        new = read_name(self._peek(1).removeprefix("+++ "), line + 1)
        self._at += 2
        if NOWHERE in (old, new):
            if old == new:
                raise invalid(line, f"expected a file name in one of the two lines, not '{NOWHERE}' in both")
            header.verb = "add" if old == NOWHERE else "delete"
            name, prefix = (new, "b/") if old == NOWHERE else (old, "a/")
            forms = [(name[2:],) * 2, (name,) * 2] if header.old or name.startswith(prefix) else [(name, name)]
        else:
            forms = [without_prefix(old, new), (old, new)]
        if header.old is None or header.new is None:
            header.old, header.new = forms[0]
            if header.old != header.new:
                raise invalid(
                    line, "the two names differ; expected the same name, or 'rename from' and 'rename to' above"
                )
        elif (header.old, header.new) not in forms:
            raise invalid(line, "the names here differ from those in the header above")

    # -- hunks -----------------------------------------------------------------------------------------------------------

    def _read_hunk(self) -> Hunk:
        found = _RANGE.match(self._lines[self._at])
        assert found is not None
        old_start, old_count, _, new_count = (1 if number is None else int(number) for number in found.groups())
        hunk = Hunk(self._at + 1, old_start=old_start)
        old_left, new_left = old_count, new_count
        self._at += 1
        while (old_left or new_left) and self._at < len(self._lines):
            row = self._lines[self._at] or " "
            if row[0] == "\\":
                self._read_no_newline(hunk)
                continue
            if row[0] not in " +-" or (row[0] != "+" and not old_left) or (row[0] != "-" and not new_left):
                break
            old_left -= row[0] != "+"
            new_left -= row[0] != "-"
            hunk.rows.append(row)
            self._at += 1
        if self._peek(0).startswith("\\") and hunk.rows:
            self._read_no_newline(hunk)
        if old_left or new_left or self._has_more_rows():
            raise self._count_error(hunk)
        return hunk

    def _read_no_newline(self, hunk: Hunk) -> None:
        """Read ``\\ No newline at end of file``, which is about the row above it."""
        mark = hunk.rows[-1][0] if hunk.rows else " "
        hunk.old_is_open |= mark != "+"
        hunk.new_is_open |= mark != "-"
        self._at += 1

    def _has_more_rows(self) -> bool:
        """Whether a row follows that the header of the hunk does not count."""
        row = self._peek(0)
        return row.startswith(("+", "-", " ")) and not row.startswith(("--- ", "+++ ")) and row.rstrip() != "--"

    def _count_error(self, hunk: Hunk) -> ToolFailed:
        rows = list(hunk.rows)
        at = self._at
        while (
            at < len(self._lines)
            and self._lines[at][:1] in ("+", "-", " ")
            and self._lines[at][:4] not in ("--- ", "+++ ")
        ):
            rows.append(self._lines[at])
            at += 1
        old = sum(row[0] != "+" for row in rows)
        new = sum(row[0] != "-" for row in rows)
        found = _RANGE.match(self._lines[hunk.line - 1])
        assert found is not None
        problem = f"the hunk has {old} old and {new} new lines, but its header counts differently"
        return invalid(hunk.line, f"{problem}; expected '@@ -{found[1]},{old} +{found[3]},{new} @@'")


def _is_binary(line: str) -> bool:
    return line.startswith("GIT binary patch") or (line.startswith("Binary files ") and line.endswith(" differ"))


def _binary_refusal(line: int) -> ToolFailed:
    message = f"line {line} of the patch: binary files cannot be patched; leave the file out. Nothing was changed"
    return ToolFailed("BINARY_NOT_SUPPORTED", message, line=line)


def _is_executable(text: str, line: int) -> bool:
    """Whether a mode is that of an executable file; modes of anything but a regular file are refused."""
    found = _MODE.match(text)
    if found is None:
        raise invalid(line, "expected a mode such as 100644")
    mode = int(found[1], 8)
    if mode & _KIND != _REGULAR:
        kind = _KINDS.get(mode & _KIND, "something that is not a file")
        raise invalid(line, f"mode {found[1]} means {kind}; a patch may only change regular files")
    return bool(mode & 0o111)


def _build_operation(header: _FileHeader, hunks: list[Hunk]) -> PatchOperation:
    """The operation of a header and its hunks; refuses hunks that do not fit the header."""
    path, new = header.old, header.new
    if path is None or new is None:
        raise invalid(header.line, "expected the names of the file, in '--- a/<path>' and '+++ b/<path>'")
    operation = PatchOperation(header.line, header.verb, path, hunks=hunks, executable=header.executable)
    if header.verb in ("move", "copy"):
        operation.new_path = new
    elif header.verb == "add":
        if len(hunks) > 1 or any(row[0] != "+" for hunk in hunks for row in hunk.rows):
            raise invalid(header.line, "expected one hunk for a new file, with '+' before every line")
        operation.content = [row[1:] for hunk in hunks for row in hunk.rows]
        operation.content_is_open = any(hunk.new_is_open for hunk in hunks)
        operation.hunks = []
    elif header.verb == "delete":
        operation.executable = None
        if any(row[0] == "+" for hunk in hunks for row in hunk.rows):
            raise invalid(header.line, "a deleted file cannot have lines that start with '+'")
    elif not hunks and header.executable is None:
        raise invalid(
            header.line, f"the patch does not say what changes in '{path}'; expected a hunk that starts with '@@ -'"
        )
    return operation


MAX_BYTES: Final = 10 * 1024 * 1024
MAX_LINES: Final = 1_000_000
MAX_OPERATIONS: Final = 2000
MAX_PATH_PARTS: Final = 20_000


def parse_patch(text: str) -> Patch:
    """The patch; raises ``INVALID_PATCH`` with the wrong line and what was expected there."""
    _refuse_malformed(text)
    lines = text.split("\n")
    if is_envelope(lines):
        patch = parse_envelope(lines)
    elif is_git_diff(lines):
        patch = parse_git_diff(lines)
    else:
        first = next((number for number, line in enumerate(lines, 1) if line.strip()), 1)
        raise invalid(first, f"expected '{BEGIN}' as the first line and '{END}' as the last, or a git diff")
    _refuse_too_many_files(patch)
    return patch


def _refuse_too_many_files(patch: Patch) -> None:
    count = len(patch.operations)
    if count > MAX_OPERATIONS:
        message = (
            f"the patch names {count} files, but at most {MAX_OPERATIONS} are allowed; split it. Nothing was changed"
        )
        raise ToolFailed("TOO_LARGE", message)
    names = (name for one in patch.operations for name in (one.path, one.target))
    if sum(name.count("/") + 1 for name in names) > MAX_PATH_PARTS:
        raise ToolFailed(
            "TOO_LARGE", "the paths in the patch have too many parts in all; split it. Nothing was changed"
        )


def _refuse_malformed(text: str) -> None:
    try:
        size = len(text) if len(text) > MAX_BYTES else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidArguments("the patch must not contain lone surrogates") from None
    if size > MAX_BYTES or text.count("\n") >= MAX_LINES:
        problem = f"the patch has {size} bytes and {text.count(chr(10)) + 1} lines"
        limits = f"at most {MAX_BYTES} bytes and {MAX_LINES} lines are allowed"
        raise ToolFailed("TOO_LARGE", f"{problem}, but {limits}; split it. Nothing was changed")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        message = f"line {line} of the patch: a NUL character, which text files do not contain. Nothing was changed"
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, line=line)
